//! A hierarchy of LRU tiers that admit always, block by block, in the order of operations that
//! `semantics.md` section 5 and the notes beside the golden numbers fix. `closure = "none"`.

/// Fill rule of a tier below the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Receives what is computed or served from below.
    WriteThrough,
    /// Receives what the tier above evicts and what is served from below; keeps what it serves.
    WriteBack,
    /// Receives what the tier above evicts; gives up what tier 1 takes.
    Victim,
}

/// One tier.
#[derive(Debug, Clone, Copy)]
pub struct Tier {
    /// Capacity in blocks.
    pub capacity: usize,
    /// Fill rule; without meaning for the first tier.
    pub fill: Fill,
    /// Whether every resident block of a request's path is touched, or only what this tier served.
    pub touch_path: bool,
}

/// What a tier did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Blocks no upper tier served.
    pub asked: u64,
    /// Blocks served.
    pub served: u64,
    /// Blocks inserted after being computed.
    pub inserted_compute: u64,
    /// Blocks inserted after being served from below.
    pub inserted_promotion: u64,
    /// Blocks inserted after being evicted above.
    pub inserted_demotion: u64,
    /// Blocks evicted.
    pub evicted: u64,
    /// Served blocks that left a victim tier for tier 1.
    pub moved_up: u64,
    /// Blocks that left a victim tier because they were computed again.
    pub superseded: u64,
    /// Offers dropped because every resident block was protected.
    pub no_room: u64,
    /// Blocks handed down to a tier that had them.
    pub already_held: u64,
    /// Blocks that left without having been served since they were inserted.
    pub dead_on_arrival: u64,
    /// The same, still resident at the end.
    pub unread_at_end: u64,
}

/// What a tier did over a whole trace.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Blocks served per request.
    pub hits: Vec<u32>,
    /// Evicted blocks in order.
    pub evicted: Vec<u32>,
    /// Resident blocks at the end, most recent first.
    pub content: Vec<u32>,
    /// Sums.
    pub counters: Counters,
}

#[derive(Debug, Clone, Copy)]
enum Cause {
    Compute,
    Promotion,
    Demotion,
}

struct State<'a> {
    tiers: &'a [Tier],
    /// Per tier (block, served since insertion), oldest first.
    lists: Vec<Vec<(u32, bool)>>,
    out: Vec<Outcome>,
}

/// Replays paths through the tiers; one outcome per tier.
#[must_use]
pub fn replay(paths: &[Vec<u32>], tiers: &[Tier]) -> Vec<Outcome> {
    let mut state =
        State { tiers, lists: vec![Vec::new(); tiers.len()], out: vec![Outcome::default(); tiers.len()] };
    for path in paths {
        let served = state.look_up(path);
        for (k, tier) in tiers.iter().enumerate().skip(1) {
            if tier.fill == Fill::Victim {
                state.leave(k, path, &served);
            }
        }
        for k in 0..tiers.len() {
            state.sweep(k, path, &served);
        }
    }
    for (outcome, list) in state.out.iter_mut().zip(&state.lists) {
        outcome.content = list.iter().rev().map(|entry| entry.0).collect();
        outcome.counters.unread_at_end = list.iter().filter(|entry| !entry.1).count() as u64;
    }
    state.out
}

impl State<'_> {
    fn holds(&self, k: usize, block: u32) -> bool {
        self.lists[k].iter().any(|entry| entry.0 == block)
    }

    /// The tier that serves each block of the path; `None` = computed.
    fn look_up(&mut self, path: &[u32]) -> Vec<Option<usize>> {
        let mut served = Vec::new();
        for k in 0..self.tiers.len() {
            self.out[k].counters.asked += (path.len() - served.len()) as u64;
            let before = served.len();
            while served.len() < path.len() && self.holds(k, path[served.len()]) {
                let block = path[served.len()];
                self.lists[k].iter_mut().filter(|entry| entry.0 == block).for_each(|entry| entry.1 = true);
                served.push(Some(k));
            }
            self.out[k].hits.push((served.len() - before) as u32);
            self.out[k].counters.served += (served.len() - before) as u64;
        }
        served.resize(path.len(), None);
        served
    }

    /// Blocks that tier 1 takes leave a victim tier.
    fn leave(&mut self, k: usize, path: &[u32], served: &[Option<usize>]) {
        for (&block, &by) in path.iter().zip(served).take(self.tiers[0].capacity) {
            let Some(at) = self.lists[k].iter().position(|entry| entry.0 == block) else {
                continue;
            };
            let (_, read) = self.lists[k].remove(at);
            let counters = &mut self.out[k].counters;
            counters.dead_on_arrival += u64::from(!read);
            if by == Some(k) {
                counters.moved_up += 1;
            } else {
                counters.superseded += 1;
            }
        }
    }

    /// The pass of tier `k`: inserts and touches, tail to head.
    fn sweep(&mut self, k: usize, path: &[u32], served: &[Option<usize>]) {
        let m = path.len().min(self.tiers[k].capacity);
        let absent: Vec<bool> = path.iter().map(|&block| !self.holds(k, block)).collect();
        for i in (0..m).rev() {
            let from_below = served[i].is_some_and(|by| by > k);
            let computed = served[i].is_none();
            let tier = self.tiers[k];
            let first = k == 0;
            let offered = match tier.fill {
                _ if first => true,
                Fill::WriteThrough => computed || from_below,
                Fill::WriteBack => from_below,
                Fill::Victim => false,
            };
            let touched = first || served[i] == Some(k) || (tier.touch_path && tier.fill != Fill::Victim);
            if absent[i] && offered {
                let cause = if computed { Cause::Compute } else { Cause::Promotion };
                self.insert(k, path[i], path, cause);
            } else if touched && let Some(at) = self.lists[k].iter().position(|entry| entry.0 == path[i]) {
                let entry = self.lists[k].remove(at);
                self.lists[k].push(entry);
            }
        }
    }

    fn insert(&mut self, k: usize, block: u32, path: &[u32], cause: Cause) {
        let capacity = self.tiers[k].capacity;
        let guarded = &path[..path.len().min(capacity)];
        let mut victim = None;
        if self.lists[k].len() >= capacity {
            let Some(at) = self.lists[k].iter().position(|entry| !guarded.contains(&entry.0)) else {
                self.out[k].counters.no_room += 1;
                return;
            };
            victim = Some(self.lists[k].remove(at));
        }
        self.lists[k].push((block, false));
        let counters = &mut self.out[k].counters;
        match cause {
            Cause::Compute => counters.inserted_compute += 1,
            Cause::Promotion => counters.inserted_promotion += 1,
            Cause::Demotion => counters.inserted_demotion += 1,
        }
        if let Some((victim, read)) = victim {
            counters.evicted += 1;
            counters.dead_on_arrival += u64::from(!read);
            self.out[k].evicted.push(victim);
            self.hand_down(k + 1, victim, path);
        }
    }

    fn hand_down(&mut self, k: usize, block: u32, path: &[u32]) {
        if k == self.tiers.len() || self.tiers[k].fill == Fill::WriteThrough {
            return;
        }
        if self.holds(k, block) {
            self.out[k].counters.already_held += 1;
        } else {
            self.insert(k, block, path, Cause::Demotion);
        }
    }
}
