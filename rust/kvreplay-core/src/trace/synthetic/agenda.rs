//! Which session acts next: sessions start at random and come back after pauses.

use super::random::{Random, later};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Sessions waiting for their next request, and the moment the next session starts.
///
/// Sessions start as a Poisson process (an open system: users do not wait for each other). The number that
/// wait grows with the requests already made, never beyond.
#[derive(Debug)]
pub(super) struct Agenda<S> {
    waiting: BinaryHeap<Reverse<(i64, u64, usize)>>,
    sessions: Vec<Option<S>>,
    free: Vec<usize>,
    /// Breaks ties by the order in which sessions were put back.
    order: u64,
    start_us: i64,
    gap_us: f64,
}

/// What happens next.
pub(super) enum Event<S> {
    /// A new session starts at this time.
    Start(i64),
    /// A session comes back at this time.
    Back(i64, S),
}

impl<S> Agenda<S> {
    /// Sessions start `per_s` times a second on average, the first one at time 0.
    pub(super) fn new(per_s: f64) -> Self {
        Self {
            waiting: BinaryHeap::new(),
            sessions: Vec::new(),
            free: Vec::new(),
            order: 0,
            start_us: 0,
            gap_us: 1e6 / per_s,
        }
    }

    /// Puts a session back until `time_us`.
    pub(super) fn wait(&mut self, time_us: i64, session: S) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() - 1
        });
        self.sessions[slot] = Some(session);
        self.waiting.push(Reverse((time_us, self.order, slot)));
        self.order += 1;
    }

    /// The next event in time.
    pub(super) fn next(&mut self, random: &mut Random) -> Event<S> {
        if let Some(&Reverse((time_us, _, slot))) = self.waiting.peek()
            && time_us <= self.start_us
            && let Some(session) = self.sessions[slot].take()
        {
            self.waiting.pop();
            self.free.push(slot);
            return Event::Back(time_us, session);
        }
        let now = self.start_us;
        self.start_us = later(self.start_us, random.exponential() * self.gap_us);
        Event::Start(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_then_of_waiting() {
        let mut random = Random::new(3, 0);
        let mut agenda = Agenda::new(1e-9);
        assert!(matches!(agenda.next(&mut random), Event::Start(0)));
        for (time, name) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            agenda.wait(time, name);
        }
        for want in [(10, 'a'), (20, 'b'), (30, 'c'), (30, 'd')] {
            let Event::Back(time, name) = agenda.next(&mut random) else { panic!("a session starts early") };
            assert_eq!((time, name), want);
        }
        assert!(matches!(agenda.next(&mut random), Event::Start(_)));
        assert_eq!(agenda.sessions.len(), 4);
    }
}
