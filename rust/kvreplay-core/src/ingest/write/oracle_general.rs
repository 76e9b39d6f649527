//! Traces as libCacheSim's `oracleGeneral`: 24 bytes for every block reference, the requests dissolved.

use super::{Rows, WriterInfo, need_plain_ids};
use crate::error::{Error, Result};
use crate::trace::{Run, Trace};
use std::io;

pub(super) const INFO: WriterInfo = WriterInfo {
    name: "oracle_general",
    doc: "libCacheSim binary records of 24 bytes, one for every block reference, with the next access",
    loses: "requests (where one ends), lengths, output ids, columns, fractions of seconds, quality",
    source: "libCacheSim oracleGeneral",
};

const NEVER: u32 = u32::MAX;

pub(super) fn start(trace: &Trace) -> Result<Box<dyn Rows + '_>> {
    need_plain_ids(trace, INFO.name)?;
    let fits = |&time_us: &i64| u32::try_from(time_us.div_euclid(1_000_000)).is_ok();
    if let Some(times) = &trace.requests.arrival_us
        && let Some(time_us) = times.iter().find(|time_us| !fits(time_us))
    {
        let message = format!("an arrival of {time_us} us does not fit the 32-bit seconds of oracle_general");
        return Err(Error::config(message, "shift the times to 0 (--anonymize --shift-times)"));
    }
    let mut begin = 0;
    let begins = (0..trace.len()).map(|request| {
        let at = begin;
        begin += u64::from(trace.path_len(request));
        at
    });
    let begins = begins.collect();
    Ok(Box::new(Records { trace, begins, next: next_requests(trace), path: Vec::new() }))
}

struct Records<'a> {
    trace: &'a Trace,
    /// Number of the first record of each request.
    begins: Vec<u64>,
    /// What is left of the runs of [`next_requests`].
    next: Vec<(u32, u32)>,
    path: Vec<u32>,
}

/// Runs `(blocks, request)` of the paths' blocks by the next request that holds them, the runs of the first
/// request last and a path's first run last: the order in which they are taken off again.
fn next_requests(trace: &Trace) -> Vec<(u32, u32)> {
    let mut next_of = vec![NEVER; trace.forest.blocks() as usize];
    let mut out = Vec::new();
    let (mut runs, mut found) = (Vec::new(), Vec::<(u32, u32)>::new());
    for request in (0..trace.len()).rev() {
        trace.forest.runs(trace.requests.node[request], &mut runs);
        found.clear();
        for &Run { start, len } in &runs {
            for next in &mut next_of[start as usize..(start + len) as usize] {
                match found.last_mut() {
                    Some((blocks, same)) if same == next => *blocks += 1,
                    _ => found.push((1, *next)),
                }
                *next = request as u32;
            }
        }
        out.extend(found.iter().rev());
    }
    out
}

impl Rows for Records<'_> {
    fn add(&mut self, request: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let requests = &self.trace.requests;
        let time_us = requests.arrival_us.as_ref().map_or(0, |times| times[request]);
        let seconds = time_us.div_euclid(1_000_000) as u32;
        let size = self.trace.block_tokens_of(request);
        self.trace.forest.path(requests.node[request], &mut self.path);
        let (mut left, mut next) = (0, NEVER);
        for (depth, &block) in self.path.iter().enumerate() {
            if left == 0 {
                (left, next) = self.next.pop().unwrap_or((u32::MAX, NEVER));
            }
            left -= 1;
            // A block has the same depth on every path, so its place in the next request is known.
            let at = if next == NEVER { -1 } else { (self.begins[next as usize] + depth as u64) as i64 };
            out.extend_from_slice(&seconds.to_le_bytes());
            out.extend_from_slice(&self.trace.ids.number(block).to_le_bytes());
            out.extend_from_slice(&size.to_le_bytes());
            out.extend_from_slice(&at.to_le_bytes());
        }
        Ok(())
    }
}
