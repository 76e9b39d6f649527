//! The queue of runs against a plain list of blocks that is swept one block at a time.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Blocks from the oldest to the newest; the hand rests on the place `hand`.
#[derive(Default)]
struct Slow {
    blocks: Vec<u32>,
    hand: usize,
}

impl Slow {
    /// SIEVE's eviction of one block.
    fn evict_swept(&mut self, visited: &mut BTreeSet<u32>) -> u32 {
        loop {
            if self.hand >= self.blocks.len() {
                self.hand = 0;
            }
            if visited.remove(&self.blocks[self.hand]) {
                self.hand += 1;
                continue;
            }
            let victim = self.blocks.remove(self.hand);
            if self.hand == self.blocks.len() {
                self.hand = 0;
            }
            return victim;
        }
    }
}

/// Pushes `len` blocks for which as many leave.
fn exchange(queue: &mut RunQueue, slow: &mut Slow, marks: (&mut BitSet, &mut BTreeSet<u32>), run: Run) {
    let (bits, set) = marks;
    let (mut block, mut left) = (run.start, Vec::new());
    while block < run.start + run.len {
        let victims = queue.evict_swept(bits, run.start + run.len - block).unwrap();
        left.extend(victims.start..victims.start + victims.len);
        queue.push(Run { start: block, len: victims.len });
        block += victims.len;
    }
    let want: Vec<u32> = (run.start..run.start + run.len)
        .map(|block| {
            let victim = slow.evict_swept(set);
            slow.blocks.push(block);
            victim
        })
        .collect();
    assert_eq!(left, want);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sweeps_like_single_blocks(
        capacity in 1u32..40,
        rounds in prop::collection::vec(
            (1u32..50, any::<bool>(), prop::collection::vec(any::<prop::sample::Index>(), 0..12)),
            1..25,
        ),
    ) {
        let (mut queue, mut slow, mut next) = (RunQueue::default(), Slow::default(), 0);
        let (mut bits, mut set) = (BitSet::new(2000), BTreeSet::new());
        queue.push(Run { start: 0, len: capacity });
        slow.blocks.extend(0..capacity);
        next += capacity;
        for (len, apart, visits) in rounds {
            next += u32::from(apart);
            let run = Run { start: next, len };
            exchange(&mut queue, &mut slow, (&mut bits, &mut set), run);
            next += len;
            for visit in visits {
                let block = *visit.get(&slow.blocks);
                bits.set(block);
                set.insert(block);
            }
            let blocks: Vec<u32> = queue.iter().flat_map(|run| run.start..run.start + run.len).collect();
            prop_assert_eq!(&blocks, &slow.blocks);
            prop_assert_eq!(bits.iter().collect::<BTreeSet<_>>(), set.clone());
            prop_assert_eq!(queue.hand().unwrap_or(slow.blocks[0]), slow.blocks[slow.hand]);
        }
    }
}

#[test]
fn the_oldest_leave_first() {
    let mut queue = RunQueue::default();
    assert_eq!(queue.evict(3), None);
    for run in [Run { start: 5, len: 3 }, Run { start: 8, len: 2 }, Run { start: 1, len: 2 }] {
        queue.push(run);
    }
    assert_eq!(queue.iter().collect::<Vec<_>>(), [Run { start: 5, len: 5 }, Run { start: 1, len: 2 }]);
    assert_eq!(queue.evict(4), Some(Run { start: 5, len: 4 }));
    assert_eq!(queue.evict(4), Some(Run { start: 9, len: 1 }));
    assert_eq!(queue.evict(4), Some(Run { start: 1, len: 2 }));
    assert_eq!(queue.evict(4), None);
    assert!(queue.is_empty());
    queue.push(Run { start: 3, len: 1 });
    assert_eq!(queue.evict(1), Some(Run { start: 3, len: 1 }));
}
