//! Runs in a queue against a plain list of blocks.

use super::*;
use crate::policy::parts::{Closure, Topology};
use crate::replay::testing::full_blocks;
use proptest::prelude::*;

const BLOCKS: u32 = 400;

fn order() -> impl Strategy<Value = Order> {
    prop::sample::select(vec![Order::Forward, Order::Back])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn equals_a_list_of_blocks(
        steps in prop::collection::vec((0u8..5, 0u32..BLOCKS, 1u32..60, order()), 1..60),
    ) {
        let trace = full_blocks(&[(0..u64::from(BLOCKS)).collect()]);
        let topology = Topology::new(&trace.forest);
        let room = Room::new(&topology, BLOCKS, Closure::None);
        let (mut queue, mut slots) = (Queue::new(), vec![0; BLOCKS as usize]);
        let mut list: Vec<u32> = Vec::new(); // oldest first
        for (kind, start, len, order) in steps {
            let len = len.min(BLOCKS - start);
            // The stretch from `start` on that is in the queue, or is not.
            let inside = |list: &[u32]| (start..start + len).take_while(|b| list.contains(b)).count() as u32;
            let outside = |list: &[u32]| (start..start + len).take_while(|b| !list.contains(b)).count() as u32;
            let take = |list: &mut Vec<u32>, run: Run| list.retain(|&b| b < run.start || b >= run.start + run.len);
            match kind {
                0 => {
                    let run = Run { start, len: outside(&list) };
                    queue.push_run(&mut slots, run, order, run.len);
                    list.extend(order.each(run));
                }
                1 => {
                    let run = Run { start, len: inside(&list) };
                    queue.renew_run(&mut slots, run, order, run.len);
                    take(&mut list, run);
                    list.extend(order.each(run));
                }
                2 => {
                    let run = Run { start, len: inside(&list) };
                    queue.remove_run(&slots, run);
                    take(&mut list, run);
                }
                _ => {
                    let out = if kind == 3 {
                        queue.pop_run(len, order)
                    } else {
                        queue.evict_run(&slots, &room, len, order)
                    };
                    prop_assert_eq!(out.is_none(), list.is_empty());
                    let Some(run) = out else { continue };
                    prop_assert!(run.len >= 1 && run.len <= len);
                    prop_assert_eq!(order.each(run).collect::<Vec<_>>(), &list[..run.len as usize]);
                    list.drain(..run.len as usize);
                }
            }
            prop_assert_eq!(queue.len() as usize, list.len());
            prop_assert_eq!(queue.iter().collect::<Vec<_>>(), list.iter().rev().copied().collect::<Vec<_>>());
        }
    }
}
