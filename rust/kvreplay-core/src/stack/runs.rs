//! The owner runs as a table: the hand-over to whatever is a sum over runs.

use super::bins::age_us;
use super::pass::pass;
use super::{Recorder, ReuseRun};
use crate::error::Result;
use crate::progress::Progress;
use crate::table::{Table, Values};
use crate::trace::Trace;

#[derive(Default)]
struct Rows<'a> {
    arrival_us: Option<&'a [i64]>,
    request: Vec<i64>,
    start: Vec<i64>,
    length: Vec<i64>,
    distance: Vec<i64>,
    previous: Vec<i64>,
    age: Vec<Option<i64>>,
}

impl Recorder for Rows<'_> {
    fn run(&mut self, run: ReuseRun) {
        self.request.push(i64::from(run.request));
        self.start.push(i64::from(run.start));
        self.length.push(i64::from(run.len));
        self.distance.push(i64::from(run.above));
        self.previous.push(i64::from(run.owner));
        self.age.push(self.arrival_us.map(|arrival| age_us(arrival, run)));
    }

    fn request(&mut self, _: u32, _: u32) {}
}

/// One row per owner run, by request and position: `request`, `start` (position of the first block on the
/// path), `length` (blocks), `distance_blocks` (distinct blocks above the first block in the LRU stack just
/// before the request; block `i` of the run, from 1, has stack distance `distance_blocks + i`),
/// `previous_request`, `age_us` (time since that request, null in a trace without times).
///
/// # Errors
/// As [`pass`].
pub fn reuse_runs(trace: &Trace, progress: &Progress) -> Result<Table> {
    let mut rows = Rows { arrival_us: trace.requests.arrival_us.as_deref(), ..Rows::default() };
    pass(trace, &mut rows, progress)?;
    Ok(Table::new()
        .with("request", Values::Int(rows.request))
        .with("start", Values::Int(rows.start))
        .with("length", Values::Int(rows.length))
        .with("distance_blocks", Values::Int(rows.distance))
        .with("previous_request", Values::Int(rows.previous))
        .with("age_us", Values::MaybeInt(rows.age)))
}
