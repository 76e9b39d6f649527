//! Twins of the policies that remember what they evicted.

use super::{Ask, Slow, cut, oldest};
use std::collections::BTreeMap;

pub(super) struct Arc {
    t1: Vec<u32>,
    t2: Vec<u32>,
    b1: Vec<u32>,
    b2: Vec<u32>,
    p: f64,
    c: usize,
}

impl Arc {
    pub(super) fn new(capacity: u32) -> Self {
        Self { t1: vec![], t2: vec![], b1: vec![], b2: vec![], p: 0.0, c: capacity as usize }
    }

    fn replace(&mut self, in_b2: bool, ask: &Ask<'_>) -> Option<u32> {
        if self.t1.len() + self.t2.len() < self.c {
            return None;
        }
        let t1 = self.t1.len() as f64;
        let first = t1 >= 1.0 && (t1 > self.p || (in_b2 && (t1 - self.p).abs() < f64::EPSILON));
        for from_t1 in [first, !first] {
            let (list, ghost) =
                if from_t1 { (&mut self.t1, &mut self.b1) } else { (&mut self.t2, &mut self.b2) };
            if let Some(victim) = oldest(list, ask) {
                ghost.push(victim);
                return Some(victim);
            }
        }
        None
    }
}

impl Slow for Arc {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        self.remove(block);
        self.t2.push(block);
    }
    fn insert(&mut self, block: u32, _: bool, ask: &Ask<'_>) -> Option<u32> {
        let (n1, n2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&block) {
            self.p = (self.p + (n2 / n1).max(1.0)).min(self.c as f64);
            cut(&mut self.b1, block);
            let victim = self.replace(false, ask);
            self.t2.push(block);
            return victim;
        }
        if self.b2.contains(&block) {
            self.p = (self.p - (n1 / n2).max(1.0)).max(0.0);
            cut(&mut self.b2, block);
            let victim = self.replace(true, ask);
            self.t2.push(block);
            return victim;
        }
        let victim;
        if self.t1.len() + self.b1.len() == self.c {
            if self.t1.len() < self.c {
                self.b1.remove(0);
                victim = self.replace(false, ask);
            } else {
                victim = oldest(&mut self.t1, ask);
            }
        } else {
            let all = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
            if all >= 2 * self.c {
                self.b2.remove(0);
            }
            victim = if all >= self.c { self.replace(false, ask) } else { None };
        }
        self.t1.push(block);
        victim
    }
    fn remove(&mut self, block: u32) {
        cut(&mut self.t1, block);
        cut(&mut self.t2, block);
    }
}

pub(super) struct TwoQ {
    a1in: Vec<u32>,
    am: Vec<u32>,
    a1out: Vec<u32>,
    kin: usize,
    kout: usize,
}

impl TwoQ {
    pub(super) fn new(capacity: u32) -> Self {
        let c = capacity as usize;
        Self { a1in: vec![], am: vec![], a1out: vec![], kin: c / 4, kout: c / 2 }
    }
}

impl Slow for TwoQ {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        if cut(&mut self.am, block) {
            self.am.push(block);
        }
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let known = cut(&mut self.a1out, block);
        let mut victim = None;
        if full {
            let first = self.a1in.len() > self.kin;
            for from_a1in in [first, !first] {
                let found = oldest(if from_a1in { &mut self.a1in } else { &mut self.am }, ask);
                if let Some(found) = found {
                    if from_a1in {
                        self.a1out.push(found);
                        if self.a1out.len() > self.kout {
                            self.a1out.remove(0);
                        }
                    }
                    victim = Some(found);
                    break;
                }
            }
        }
        let queue = if known { &mut self.am } else { &mut self.a1in };
        queue.push(block);
        victim
    }
    fn remove(&mut self, block: u32) {
        cut(&mut self.a1in, block);
        cut(&mut self.am, block);
    }
}

pub(super) struct S3Fifo {
    small: Vec<u32>,
    main: Vec<u32>,
    ghost: Vec<u32>,
    count: BTreeMap<u32, u32>,
    m: usize,
}

impl S3Fifo {
    pub(super) fn new(capacity: u32) -> Self {
        let small = (capacity as usize / 10).max(1);
        let m = (capacity as usize).saturating_sub(small);
        Self { small: vec![], main: vec![], ghost: vec![], count: BTreeMap::new(), m }
    }

    fn small_victim(&mut self, ask: &Ask<'_>) -> Option<u32> {
        while let Some(block) = oldest(&mut self.small, ask) {
            if self.count[&block] < 2 {
                self.ghost.push(block);
                if self.ghost.len() > self.m {
                    self.ghost.remove(0);
                }
                return Some(block);
            }
            self.main.push(block);
            self.count.insert(block, 0);
        }
        None
    }

    fn main_victim(&mut self, ask: &Ask<'_>) -> Option<u32> {
        while let Some(block) = oldest(&mut self.main, ask) {
            if self.count[&block] == 0 {
                return Some(block);
            }
            *self.count.get_mut(&block).unwrap() -= 1;
            self.main.push(block);
        }
        None
    }
}

impl Slow for S3Fifo {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        let count = self.count.get_mut(&block).unwrap();
        *count = (*count + 1).min(3);
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let known = cut(&mut self.ghost, block);
        let mut victim = None;
        if full {
            let mut main = self.main.len() > self.m || self.small.is_empty();
            while victim.is_none() {
                victim = if main { self.main_victim(ask) } else { self.small_victim(ask) };
                main = !main;
            }
        }
        let queue = if known { &mut self.main } else { &mut self.small };
        queue.push(block);
        self.count.insert(block, 0);
        victim
    }
    fn remove(&mut self, block: u32) {
        cut(&mut self.small, block);
        cut(&mut self.main, block);
    }
}
