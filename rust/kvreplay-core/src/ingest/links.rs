//! Arrivals that depend on other requests: a delay after the turn before (closed loop), a wait for requests of
//! the same play (agentic traces).
//!
//! Such a trace leaves the arrival to the engine: a turn is sent so long after the answer to the one before.
//! Without a clock of the engine's own this is read as an open loop, in which an answer takes no time. The
//! arrival is then the earliest one the trace allows, and turns keep their order.

use super::notes::{Notes, Places};
use super::rows::Rows;
use super::starts::NO_OWNER;
use crate::trace::{Column, NO_CODE, Texts};
use std::collections::BTreeMap;

/// What rows say about arrivals relative to others, as read.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Row, microseconds after the turn before.
    delays: Vec<(u32, i64)>,
    /// Row, number of the request id it waits for, microseconds from then on.
    waits: Vec<(u32, u32, i64)>,
    ids: Texts,
}

impl Links {
    pub(crate) fn delay(&mut self, row: u32, delay_us: i64) {
        self.delays.push((row, delay_us));
    }

    pub(crate) fn wait(&mut self, row: u32, request_id: &str, delay_us: i64) {
        let id = self.ids.number(request_id);
        self.waits.push((row, id, delay_us));
    }
}

/// `row` does not arrive before `base` (`None` = the start of its session) and a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) row: u32,
    pub(crate) base: Option<u32>,
    pub(crate) delay_us: i64,
}

/// Turns what rows say into links between rows, in order of rows, and tells [`Rows::times`].
pub(crate) fn connect(rows: &mut Rows, notes: &mut Notes) {
    let mut links = Vec::new();
    delays(rows, &mut links);
    let lost = waits(rows, &mut links);
    if let Some(&(first, _)) = lost.first() {
        let place = Some(rows.places.get(first));
        notes.mention("clock_skew", lost.len() as u64, place, Some(rows.links.ids.get(lost[0].1)));
        let detail = format!("waits for requests that are not in their play, taken as over: {}", lost.len());
        notes.detail("clock_skew", detail);
    }
    links.sort_by_key(|link: &Link| link.row);
    rows.links = Links::default();
    rows.times.link(links);
}

fn column<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    columns.iter().find(|column| column.name == name)
}

/// Closed-loop turns: a row without a time arrives `delay` after the row of its session before it.
fn delays(rows: &mut Rows, links: &mut Vec<Link>) {
    let Some(sessions) = column(&rows.columns, "session").filter(|_| !rows.links.delays.is_empty()) else {
        return;
    };
    let mut delays = rows.links.delays.iter().copied().peekable();
    let mut before = vec![None::<u32>; sessions.texts.len()];
    let mut begun = vec![false; sessions.texts.len()];
    // Sessions whose first row has no time: the clock of the rest is their own.
    let mut own = vec![false; sessions.texts.len()];
    for row in 0..rows.node.len() as u32 {
        let delay_us = delays.next_if(|delay| delay.0 == row).map(|delay| delay.1);
        let code = sessions.codes[row as usize];
        if code == NO_CODE {
            continue;
        }
        let code = code as usize;
        let first = !std::mem::replace(&mut begun[code], true);
        if rows.times.missing(row) {
            match (delay_us, before[code]) {
                (Some(delay_us), base) => links.push(Link { row, base, delay_us }),
                (None, None) if first => links.push(Link { row, base: None, delay_us: 0 }),
                (None, _) => continue,
            }
            own[code] |= before[code].is_none();
        }
        before[code] = Some(row);
    }
    if own.contains(&true) {
        let codes: Vec<u32> = sessions.codes.clone();
        give_owners(rows, &codes, &own);
    }
}

/// Puts the rows of the sessions `own` on clocks of their own, unless they are on one already.
fn give_owners(rows: &mut Rows, sessions: &[u32], own: &[bool]) {
    rows.owners.resize(rows.node.len(), NO_OWNER);
    let mut fresh =
        rows.owners.iter().filter(|&&owner| owner != NO_OWNER).max().map_or(0, |&owner| owner + 1);
    let mut owner_of = vec![NO_OWNER; own.len()];
    for (owner, &code) in rows.owners.iter_mut().zip(sessions) {
        if *owner == NO_OWNER && code != NO_CODE && own[code as usize] {
            let known = &mut owner_of[code as usize];
            if *known == NO_OWNER {
                *known = fresh;
                fresh += 1;
            }
            *owner = *known;
        }
    }
}

/// Waits for requests of the same play. Returns those (row, number of the id) whose request is not there.
fn waits(rows: &Rows, links: &mut Vec<Link>) -> Vec<(u32, u32)> {
    let waits = &rows.links.waits;
    if waits.is_empty() {
        return Vec::new();
    }
    let owner = |row: usize| rows.owners.get(row).copied().unwrap_or(NO_OWNER);
    let mut by_id = BTreeMap::new();
    if let Some(ids) = column(&rows.columns, "request_id") {
        for row in 0..rows.node.len() {
            if let Some(id) = ids.get(row) {
                by_id.entry((owner(row), id)).or_insert(row as u32);
            }
        }
    }
    let mut lost = Vec::new();
    for &(row, id, delay_us) in waits {
        match by_id.get(&(owner(row as usize), rows.links.ids.get(id))) {
            Some(&base) => links.push(Link { row, base: Some(base), delay_us }),
            None => lost.push((row, id)),
        }
    }
    lost
}

/// Works out the arrivals of rows with links. `times_us[row]` is `None` where the row has no time of its own.
///
/// A row arrives at the latest of its own time and its links. Rows that wait for each other in a circle are
/// named, and the wait that closes the circle is taken as over.
pub(crate) fn resolve(
    times_us: &[Option<i64>],
    links: &[Link],
    places: &Places,
    notes: &mut Notes,
) -> Vec<i64> {
    let origin = times_us.iter().flatten().min().copied().unwrap_or(0);
    let links_of = |row: u32| {
        let begin = links.partition_point(|link| link.row < row);
        let end = begin + links[begin..].partition_point(|link| link.row == row);
        begin..end
    };
    let mut out = vec![0_i64; times_us.len()];
    let mut state = vec![State::New; times_us.len()];
    let mut stack = Vec::new();
    let mut circles = Vec::new();
    for first in 0..times_us.len() as u32 {
        if state[first as usize] == State::New {
            state[first as usize] = State::Open;
            stack.push((first, links_of(first)));
        }
        while let Some((row, open)) = stack.last_mut() {
            let row = *row;
            let next = open.next().and_then(|link| links[link].base.map(|base| (link, base)));
            if let Some((_, base)) = next {
                match state[base as usize] {
                    State::New => {
                        state[base as usize] = State::Open;
                        stack.push((base, links_of(base)));
                    }
                    State::Open => circles.push(row),
                    State::Done => {}
                }
                continue;
            }
            if open.start < open.end {
                continue; // a link to the start of the session
            }
            let at = |link: &Link| match link.base {
                None => Some(origin.saturating_add(link.delay_us)),
                Some(base) if state[base as usize] == State::Done => {
                    Some(out[base as usize].saturating_add(link.delay_us))
                }
                Some(_) => None,
            };
            let latest = links[links_of(row)].iter().filter_map(at).chain(times_us[row as usize]).max();
            out[row as usize] = latest.unwrap_or(origin);
            state[row as usize] = State::Done;
            stack.pop();
        }
    }
    if let Some(&first) = circles.iter().min() {
        notes.mention("clock_skew", circles.len() as u64, Some(places.get(first)), Some("waits in a circle"));
    }
    out
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

#[cfg(test)]
mod tests {
    use super::super::notes::Place;
    use super::*;
    use proptest::prelude::*;

    fn run(times: &[Option<i64>], links: &[(u32, Option<u32>, i64)]) -> (Vec<i64>, u64) {
        let mut places = Places::default();
        for line in 1..=times.len() as u64 {
            places.push(Place { file: 0, line });
        }
        let links: Vec<Link> =
            links.iter().map(|&(row, base, delay_us)| Link { row, base, delay_us }).collect();
        let mut notes = Notes::default();
        let out = resolve(times, &links, &places, &mut notes);
        (out, notes.finish().count("clock_skew"))
    }

    #[test]
    fn chains_joins_and_circles() {
        assert_eq!(run(&[Some(5), None, None], &[(1, Some(0), 2), (2, Some(1), 3)]), (vec![5, 7, 10], 0));
        // Forward, joined, own time later than the wait, and from the start of the session.
        let links = [(0, Some(3), 1), (1, Some(0), 4), (1, Some(3), 9), (2, None, 6)];
        assert_eq!(run(&[Some(8), None, None, Some(2)], &links), (vec![8, 12, 8, 2], 0));
        assert_eq!(run(&[None, None], &[(0, Some(1), 1), (1, Some(0), 1)]), (vec![1, 0], 1));
        assert_eq!(run(&[None], &[(0, Some(0), 1)]), (vec![0], 1));
    }

    proptest! {
        #[test]
        fn backward_links_equal_one_pass(
            rows in prop::collection::vec((prop::option::of(0..50_i64), prop::option::of((0..20_u32, 0..9_i64))), 1..20),
        ) {
            let own: Vec<Option<i64>> = rows.iter().map(|row| row.0).collect();
            let mut links = Vec::new();
            for (row, &(_, link)) in (0..).zip(&rows) {
                if let (Some((base, delay)), 1..) = (link, row) {
                    links.push((row, Some(base % row), delay));
                }
            }
            let origin = own.iter().flatten().min().copied().unwrap_or(0);
            let mut want: Vec<i64> = Vec::new();
            for (row, &own) in (0..).zip(&own) {
                let waits = links.iter().filter(|link| link.0 == row);
                let latest = waits.map(|link| want[link.1.unwrap() as usize] + link.2).chain(own).max();
                want.push(latest.unwrap_or(origin));
            }
            prop_assert_eq!(run(&own, &links), (want, 0));
        }
    }
}
