//! W-`TinyLFU`: a small LRU window lets new blocks in, a frequency sketch decides whether they may stay.
//!
//! Einziger, Friedman, Manes, "`TinyLFU`: A Highly Efficient Cache Admission Policy", ACM `ToS` 2017; Caffeine.
//! The window is an LRU of a hundredth of the tier; the main part a segmented LRU of `probation` and
//! `protected` (four fifths of main). The oldest block of the window (the candidate) is held against the
//! next to leave of the main part (the victim), and the one used more often stays.
//!
//! Where we differ from Caffeine: no adaptive window, no random admission of warm candidates; a tie keeps
//! the victim. A candidate that may not leave wins whatever the counts. The sketch hashes block numbers.

use super::parts::{Queue, Sketch};
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "wtinylfu",
    doc: "a small LRU window, then a segmented LRU that only takes what is used more often than its victim",
    parameters: &[
        Param { name: "window", default: "0.01", doc: "share of the tier for the window, 0 to 1" },
        Param {
            name: "protected",
            default: "0.8",
            doc: "share of the main part for blocks used again, 0 to 1",
        },
    ],
    source: "Einziger et al., ACM ToS 2017; Caffeine",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        let (window, protected): (f64, f64) =
            (args.number("window", 0.0..=1.0)?, args.number("protected", 0.0..=1.0)?);
        let most_window = ((f64::from(build.capacity) * window) as u32).max(1);
        let most_main = build.capacity.saturating_sub(most_window);
        Ok(Box::new(WTinyLfu {
            slots: vec![0; build.blocks()],
            part: vec![Part::None; build.blocks()],
            window: Queue::new(),
            probation: Queue::new(),
            protected: Queue::new(),
            sketch: Sketch::new(build.capacity.min(build.topology.blocks())),
            most_window,
            most_main,
            most_protected: (f64::from(most_main) * protected) as u32,
        }))
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Part {
    None,
    Window,
    Probation,
    Protected,
}

struct WTinyLfu {
    slots: Vec<u32>,
    part: Vec<Part>,
    window: Queue,
    probation: Queue,
    protected: Queue,
    sketch: Sketch,
    most_window: u32,
    most_main: u32,
    most_protected: u32,
}

impl WTinyLfu {
    fn unlink(&mut self, block: u32) {
        let part = std::mem::replace(&mut self.part[block as usize], Part::None);
        match part {
            Part::Probation => self.probation.remove(&self.slots, block),
            Part::Protected => self.protected.remove(&self.slots, block),
            Part::Window | Part::None => self.window.remove(&self.slots, block),
        }
    }

    fn link(&mut self, block: u32, part: Part, room: &Room<'_>) {
        self.part[block as usize] = part;
        let queue = match part {
            Part::Probation => &mut self.probation,
            Part::Protected => &mut self.protected,
            Part::Window | Part::None => &mut self.window,
        };
        queue.push(&mut self.slots, block, room.exposed(block));
    }

    /// The next to leave of the main part.
    fn main_victim(&mut self, room: &Room<'_>) -> Option<u32> {
        self.probation.oldest(&self.slots, room).or_else(|| self.protected.oldest(&self.slots, room))
    }

    /// The window is full: its oldest block moves on or leaves. Returns who leaves.
    fn shift(&mut self, candidate: u32, victim: Option<u32>, room: &Room<'_>) -> Option<u32> {
        if self.probation.len() + self.protected.len() < self.most_main {
            self.unlink(candidate);
            self.link(candidate, Part::Probation, room);
            return None;
        }
        let may_leave = room.may_leave(candidate);
        match victim {
            Some(victim) if !may_leave || self.sketch.count(candidate) > self.sketch.count(victim) => {
                self.unlink(victim);
                self.unlink(candidate);
                self.link(candidate, Part::Probation, room);
                Some(victim)
            }
            None if !may_leave => {
                let oldest = self.window.oldest(&self.slots, room)?;
                self.unlink(oldest);
                Some(oldest)
            }
            _ => {
                self.unlink(candidate);
                Some(candidate)
            }
        }
    }
}

impl Policy for WTinyLfu {
    #[inline]
    fn hit(&mut self, block: u32, room: &Room<'_>) {
        self.sketch.record(block);
        match self.part[block as usize] {
            Part::Probation => {
                self.unlink(block);
                self.link(block, Part::Protected, room);
                if self.protected.len() > self.most_protected
                    && let Some(oldest) = self.protected.oldest_any()
                {
                    self.unlink(oldest);
                    self.link(oldest, Part::Probation, room);
                }
            }
            Part::Protected => self.protected.renew(&mut self.slots, block, room.exposed(block)),
            Part::Window | Part::None => self.window.renew(&mut self.slots, block, room.exposed(block)),
        }
    }

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut main_victim = None;
        if room.is_full() {
            main_victim = self.main_victim(room);
            if main_victim.is_none() && self.window.oldest(&self.slots, room).is_none() {
                return Stored::NoRoom;
            }
        }
        self.sketch.record(block);
        let mut victim = None;
        if self.window.len() >= self.most_window
            && let Some(candidate) = self.window.oldest_any()
        {
            victim = self.shift(candidate, main_victim, room);
        }
        self.link(block, Part::Window, room);
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.unlink(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        let queue = match self.part[block as usize] {
            Part::Probation => &mut self.probation,
            Part::Protected => &mut self.protected,
            Part::Window | Part::None => &mut self.window,
        };
        queue.expose(&self.slots, block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.main_victim(room).or_else(|| self.window.oldest(&self.slots, room))
    }

    fn content(&self) -> Vec<u32> {
        self.protected.iter().chain(self.probation.iter()).chain(self.window.iter()).collect()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        let main = self.probation.len() + self.protected.len();
        let (window, protected) = (self.window.len(), self.protected.len());
        if window > self.most_window || main > self.most_main || protected > self.most_protected {
            return Err(format!("window {window}, main {main}, protected {protected} are over their sizes"));
        }
        validate_content(&self.content(), room)
    }
}
