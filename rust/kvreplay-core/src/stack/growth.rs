//! How hits grow with the length of the trace: a trace that is still climbing at its end is too short to
//! say what longer retention is worth.

use super::pass::pass;
use super::slices::hits_of;
use super::{Recorder, ReuseRun};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::table::{Table, Values};
use crate::trace::Trace;

/// Cumulative counts at the end of each window.
#[derive(Debug, Clone, Default)]
struct Row {
    requests: i64,
    input_tokens: i64,
    ceiling_hit_tokens: i64,
    hit_tokens: Vec<i64>,
    distinct_blocks: i64,
}

struct Grow<'a> {
    trace: &'a Trace,
    capacities: &'a [u64],
    /// The first request behind each window.
    ends: Vec<usize>,
    now: Row,
    hits: Vec<u32>,
    rows: Vec<Row>,
}

impl Grow<'_> {
    /// Closes all windows that end before `request`.
    fn close(&mut self, request: usize) {
        while self.ends.get(self.rows.len()).is_some_and(|&end| end <= request) {
            self.rows.push(self.now.clone());
        }
    }
}

impl Recorder for Grow<'_> {
    fn run(&mut self, run: ReuseRun) {
        for (&capacity, hits) in self.capacities.iter().zip(&mut self.hits) {
            *hits += hits_of(run, capacity);
        }
    }

    fn request(&mut self, request: u32, known_blocks: u32) {
        let request = request as usize;
        self.close(request);
        self.now.requests += 1;
        self.now.input_tokens += i64::from(self.trace.requests.input_tokens[request]);
        self.now.ceiling_hit_tokens += self.trace.tokens(request, known_blocks) as i64;
        self.now.distinct_blocks += i64::from(self.trace.path_len(request) - known_blocks);
        for (sum, hits) in self.now.hit_tokens.iter_mut().zip(&mut self.hits) {
            *sum += self.trace.tokens(request, std::mem::take(hits)) as i64;
        }
    }
}

/// The end of each of `windows` equal parts of the trace's time (of its requests when it has no times, or
/// when all arrive at once), as the first request behind it and the time up to which it counts.
fn window_ends(trace: &Trace, windows: usize) -> Vec<(usize, Option<i64>)> {
    let span = trace
        .requests
        .arrival_us
        .as_deref()
        .and_then(|arrival| Some((arrival, *arrival.first()?, *arrival.last()?)));
    let end = |k: usize| match span {
        Some((arrival, first, last)) if last > first => {
            let length = i128::from(last) - i128::from(first);
            let until = (i128::from(first) + length * k as i128 / windows as i128) as i64;
            (arrival.partition_point(|&at| at <= until), Some(until))
        }
        Some((_, first, _)) => (trace.len() * k / windows, Some(first)),
        None => (trace.len() * k / windows, None),
    };
    (1..=windows).map(end).collect()
}

/// Cumulative counts after each of `windows` equal parts of the trace: `window` (from 1), `until_us` (null in a
/// trace without times), `requests`, `input_tokens`, `ceiling_hit_tokens`, `hit_tokens_0` .. (LRU of each capacity in
/// blocks), `distinct_blocks`. A request belongs to the first window that ends at or after its arrival.
///
/// # Errors
/// A configuration error for 0 or more than 100,000 windows; else as [`pass`].
pub fn window_growth(
    trace: &Trace,
    capacities: &[u64],
    windows: usize,
    progress: &Progress,
) -> Result<Table> {
    if windows == 0 || windows > 100_000 {
        return Err(Error::config(format!("{windows} windows"), "use a number of windows from 1 to 100000"));
    }
    let ends = window_ends(trace, windows);
    let mut grow = Grow {
        trace,
        capacities,
        ends: ends.iter().map(|end| end.0).collect(),
        now: Row { hit_tokens: vec![0; capacities.len()], ..Row::default() },
        hits: vec![0; capacities.len()],
        rows: Vec::with_capacity(windows),
    };
    pass(trace, &mut grow, progress)?;
    grow.close(trace.len());
    let column = |of: &dyn Fn(&Row) -> i64| Values::Int(grow.rows.iter().map(of).collect());
    let mut table = Table::new()
        .with("window", Values::Int((1..=windows as i64).collect()))
        .with("until_us", Values::MaybeInt(ends.iter().map(|end| end.1).collect()))
        .with("requests", column(&|row| row.requests))
        .with("input_tokens", column(&|row| row.input_tokens))
        .with("ceiling_hit_tokens", column(&|row| row.ceiling_hit_tokens));
    for i in 0..capacities.len() {
        table = table.with(&format!("hit_tokens_{i}"), column(&|row| row.hit_tokens[i]));
    }
    Ok(table.with("distinct_blocks", column(&|row| row.distinct_blocks)))
}
