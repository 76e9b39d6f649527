//! The in-process engine, step by step. The rules are those of `golden/engines/README.md`; for disk, remote and
//! promotion those of `LMCache` 0.5.6's source, as the profile shows them.

use super::{Bench, tier};
use crate::hierarchy::{EventKind, TierSpec};

fn alone(capacity: u64, policy: &str) -> Bench {
    Bench::new("lmcache@0.5.6", &[tier("cpu", capacity, policy)], &[])
}

#[test]
fn lru_evicts_a_stored_prompt_head_first_and_a_looked_up_one_tail_first() {
    let mut cache = alone(5, "lru");
    assert_eq!(cache.ask(&[1, 2, 3], 35), [0]);
    assert_eq!(cache.next_out(0), [1, 2, 3]);
    assert_eq!(cache.full(&[1, 2, 3]), [30]);
    assert_eq!(cache.next_out(0), [3, 2, 1], "the look-up touches tail to head");
    // Two slots are free, the third takes the victim 3.
    assert_eq!(cache.full(&[4, 5, 6]), [0]);
    assert_eq!(cache.next_out(0), [2, 1, 4, 5, 6]);
    assert_eq!(cache.events(EventKind::Evict), [[3]]);
}

#[test]
fn a_chunk_behind_a_hole_takes_a_slot_for_nothing() {
    let mut cache = alone(4, "lru");
    cache.full(&[1, 2]);
    cache.full(&[1]);
    cache.full(&[7, 8]);
    // 1 was looked up and is younger than 2, which is evicted first.
    assert_eq!(cache.next_out(0), [2, 1, 7, 8]);
    cache.full(&[9]);
    assert_eq!(cache.next_out(0), [1, 7, 8, 9]);
    cache.full(&[10]);
    // [1, 7..]: chunk 1 is gone, 7 to 10 are there. A prompt 11, 7, 8 takes three slots: 7, 8 and 9 go.
    assert_eq!(cache.next_out(0), [7, 8, 9, 10]);
    assert_eq!(cache.full(&[11, 7, 8]), [0]);
    assert_eq!(cache.next_out(0), [10, 11, 7, 8]);
    // 11 is found; 8 is missing now: after 12 took its place the slots of 10 and 12 suffice.
    assert_eq!(cache.events(EventKind::Evict), [[2, 1, 7, 8, 9]]);
}

#[test]
fn a_spare_slot_is_given_back() {
    let mut cache = alone(4, "lru");
    cache.full(&[1, 2]);
    // The slot of 2, which is there behind the hole, evicts nobody and stays free.
    cache.full(&[3, 2]);
    assert_eq!(cache.next_out(0), [1, 2, 3]);
    cache.full(&[4]);
    assert_eq!(cache.resident(0), 4);
    assert_eq!(cache.events(EventKind::Evict), [[0; 0]]);
}

#[test]
fn a_prompt_larger_than_memory_keeps_its_head() {
    let mut cache = alone(3, "lru");
    cache.full(&[1, 2]);
    assert_eq!(cache.full(&[3, 4, 5, 6, 7]), [0]);
    assert_eq!(cache.next_out(0), [3, 4, 5]);
    assert_eq!(cache.no_room(0), 2);
    let mut none = alone(0, "lru");
    assert_eq!(none.full(&[1]), [0]);
    assert_eq!((none.full(&[1]), none.no_room(0)), (vec![0], 2));
}

#[test]
fn mru_evicts_the_head_of_what_it_has_just_found() {
    let mut cache = alone(3, "mru");
    cache.full(&[1, 2, 3]);
    assert_eq!(cache.next_out(0), [3, 2, 1]);
    // Found: 1, 2, touched tail to head, so 1 is the most recent and the victim for 4.
    assert_eq!(cache.full(&[1, 2, 4]), [20]);
    assert_eq!(cache.next_out(0), [4, 2, 3]);
}

#[test]
fn fifo_takes_no_notice_of_uses() {
    let mut cache = alone(3, "fifo");
    cache.full(&[1, 2, 3]);
    assert_eq!(cache.full(&[1]), [10]);
    cache.full(&[4]);
    assert_eq!(cache.next_out(0), [2, 3, 4]);
}

#[test]
fn lfu_forgets_the_count_of_what_it_evicts() {
    let mut cache = alone(3, "lfu");
    cache.full(&[1, 2]);
    cache.full(&[1]);
    cache.full(&[3]);
    assert_eq!(cache.next_out(0), [2, 3, 1], "bucket 1 in order of arrival, then bucket 2");
    cache.full(&[4]);
    cache.full(&[2]);
    assert_eq!(cache.next_out(0), [4, 2, 1]);
    cache.full(&[2]);
    cache.full(&[2]);
    assert_eq!(cache.next_out(0), [4, 1, 2], "2 has three uses, 1 has two");
}

#[test]
fn a_partial_chunk_is_neither_stored_nor_found() {
    let mut cache = alone(9, "lru");
    cache.ask(&[1, 2, 3], 29);
    assert_eq!(cache.next_out(0), [1, 2]);
    assert_eq!(cache.ask(&[1, 2, 3], 29), [20]);
    assert_eq!(cache.ask(&[], 0), [0]);
    assert_eq!(cache.ask(&[1], 9), [0]);
}

#[test]
fn chunks_without_a_name_take_room_and_are_never_found() {
    let mut cache = alone(4, "lru");
    assert_eq!(cache.ask(&[1, 2], 40), [0]);
    assert_eq!((cache.next_out(0), cache.resident(0)), (vec![1, 2], 4));
    // Found: 1, 2. Two more unnamed chunks take the place of the first two.
    assert_eq!(cache.ask(&[1, 2], 40), [20]);
    assert_eq!((cache.next_out(0), cache.resident(0)), (vec![2, 1], 4));
    // A hundred of them: as many as fit, and nothing else is left.
    assert_eq!(cache.ask(&[], 1000), [0]);
    assert_eq!((cache.next_out(0), cache.resident(0), cache.no_room(0)), (vec![], 4, 96));
    let (_, counters) = cache.out.finish(&[vec![]]);
    assert_eq!((counters[0].admitted, counters[0].evicted, counters[0].unread_at_end), (10, 6, 4));
    assert_eq!(counters[0].dead_on_arrival, 4, "1 and 2 were served once, four unnamed chunks never");
}

#[test]
fn a_load_below_the_minimum_is_not_made_but_refreshes() {
    let mut cache = Bench::new("lmcache", &[tier("cpu", 5, "lru")], &[("min_retrieve_tokens", "20")]);
    cache.full(&[1, 2, 3]);
    assert_eq!(cache.full(&[1, 9]), [0]);
    // 1 was found and is not stored again.
    assert_eq!(cache.next_out(0), [2, 3, 1, 9]);
    assert_eq!(cache.full(&[1, 9]), [20]);
}

#[test]
fn decoded_chunks_are_stored_one_by_one_if_asked_for() {
    let mut off = alone(9, "lru");
    off.decode(&[1], 15, &[2, 3], 20);
    assert_eq!(off.next_out(0), [1]);
    let mut on = Bench::new("lmcache", &[tier("cpu", 3, "lru")], &[("save_decode_cache", "true")]);
    on.decode(&[1], 15, &[2, 3], 20);
    assert_eq!(on.next_out(0), [1, 2, 3]);
    // 35 tokens and 30 decoded ones: three chunks of the prompt, then three without a name.
    on.decode(&[4, 5, 6], 35, &[], 30);
    assert_eq!((on.next_out(0), on.resident(0)), (vec![], 3));
    let (events, counters) = on.out.finish(&[vec![]]);
    assert_eq!(counters[0].admitted, 9);
    let evicted = (0..events.len()).filter(|&i| events.kind[i] == EventKind::Evict);
    assert_eq!(evicted.map(|i| events.block[i]).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}

fn with_disk(cpu: u64, disk: u64, policy: &str) -> Bench {
    Bench::new("lmcache", &[tier("cpu", cpu, policy), tier("disk", disk, policy)], &[])
}

#[test]
fn disk_goes_on_where_memory_ends_and_is_copied_up() {
    let mut cache = with_disk(3, 6, "lru");
    cache.full(&[1, 2, 3]);
    cache.full(&[4, 5]);
    assert_eq!((cache.next_out(0), cache.next_out(1)), (vec![3, 4, 5], vec![1, 2, 3, 4, 5]));
    // Memory lacks 1, so disk serves 1, 2, 3: three slots of memory, and 3 of memory goes as well.
    assert_eq!(cache.full(&[1, 2, 3]), [0, 30]);
    assert_eq!(cache.next_out(0), [1, 2, 3]);
    // The look-up put 3, 2, 1 last; the load put them in order again.
    assert_eq!(cache.next_out(1), [4, 5, 1, 2, 3]);
    // 1 and 2 from memory, nothing from disk; 6 is written to both.
    assert_eq!(cache.full(&[1, 2, 6]), [20, 0]);
    assert_eq!(cache.next_out(0), [2, 1, 6]);
    assert_eq!(cache.next_out(1), [4, 5, 1, 2, 3, 6]);
    assert_eq!(cache.events(EventKind::Evict), [vec![1, 2, 3, 4, 5, 3], vec![]]);
}

#[test]
fn a_load_ends_where_memory_has_no_slot_left() {
    let mut cache = with_disk(2, 9, "lru");
    cache.full(&[1, 2]);
    cache.full(&[3, 4]);
    // Nothing of 1, 2 is in memory. Disk has both; then 1 in memory is pinned and 5 gets one slot.
    assert_eq!(cache.full(&[1, 2]), [0, 20]);
    cache.full(&[9]);
    assert_eq!(cache.next_out(0), [2, 9]);
    assert_eq!(cache.next_out(1), [3, 4, 1, 2, 9]);
    let mut small = with_disk(1, 9, "lru");
    small.full(&[1]);
    small.full(&[1, 2]);
    // 2 took the only slot, from 1. Both are on disk.
    assert_eq!((small.next_out(0), small.next_out(1)), (vec![2], vec![1, 2]));
    assert_eq!(small.full(&[1, 2]), [0, 10], "only one chunk fits beside the pinned ones");
    assert_eq!(small.next_out(0), [1]);
    assert_eq!(small.next_out(1), [2, 1], "the load touched 1 alone");
}

#[test]
fn what_the_gpu_holds_is_refreshed_but_not_loaded() {
    // Chunks of one block; the GPU has four usable blocks.
    let tiers = [tier("gpu", 5, "lru"), tier("cpu", 9, "lru"), tier("disk", 9, "lru")];
    let mut engine = Bench::new("vllm+lmcache", &tiers, &[]);
    engine.ask(&[1, 2, 3], 35);
    assert_eq!(engine.ask(&[1, 2, 3], 35), [30, 0, 0]);
    assert_eq!(engine.next_out(1), [3, 2, 1]);
    engine.ask(&[4, 5, 6], 35);
    assert_eq!(engine.ask(&[1, 2, 3], 35), [0, 30, 0]);
    assert_eq!(engine.ask(&[7, 8], 20), [0, 0, 0]);
    assert_eq!(engine.ask(&[7, 8], 20), [10, 9, 0], "the last token is computed");
}

#[test]
fn mru_memory_gives_up_what_disk_still_has() {
    let mut cache = with_disk(3, 9, "mru");
    cache.full(&[1, 2, 3]);
    cache.full(&[1, 4]);
    // 1, found, was the most recent: memory holds 2, 3, 4.
    assert_eq!(cache.next_out(0), [4, 3, 2]);
    // Look-up: 1 from disk, and disk goes on with 2, since a run does not come back to memory.
    assert_eq!(cache.full(&[1, 2]), [0, 20]);
    // Two slots: the victims are 4 and 3. 2 was there and keeps its place, 1 is new.
    assert_eq!(cache.next_out(0), [1, 2]);
    assert_eq!(cache.resident(0), 2);
}

#[test]
fn a_full_remote_backend_takes_nothing_more_or_evicts_by_itself() {
    let tiers = |policy| [tier("cpu", 1, "lru"), tier("remote", 2, policy)];
    let mut full = Bench::new("lmcache", &tiers("none"), &[]);
    for chunk in 1..=3 {
        full.full(&[chunk]);
    }
    assert_eq!((full.next_out(1), full.no_room(1)), (vec![1, 2], 1));
    assert_eq!(full.full(&[1]), [0, 10]);
    assert_eq!(full.next_out(0), [1], "copied into memory");
    let mut lru = Bench::new("lmcache", &tiers("lru"), &[]);
    for chunk in [1, 2, 1, 3] {
        lru.full(&[chunk]);
    }
    assert_eq!(lru.next_out(1), [1, 3], "1 was read after 2 came");
    assert_eq!(lru.full(&[3]), [10, 0], "memory serves it: the server does not know");
    assert_eq!(lru.next_out(1), [1, 3]);
}

#[test]
fn without_memory_disk_serves_alone() {
    let mut cache = Bench::new("lmcache", &[tier("disk", 3, "lru"), tier("blob", 9, "lru")], &[]);
    cache.full(&[1, 2, 3, 4]);
    assert_eq!((cache.next_out(0), cache.next_out(1)), (vec![2, 3, 4], vec![1, 2, 3, 4]));
    assert_eq!(cache.full(&[1, 2]), [0, 20], "the named remote backend serves, and nothing moves up");
    assert_eq!(cache.next_out(0), [2, 3, 4]);
}

fn behind(gpu: u64, cpu_chunks: u64, chunk_blocks: u32) -> Bench {
    let cpu = TierSpec { chunk_blocks, ..TierSpec::new("cpu", cpu_chunks * u64::from(chunk_blocks)) };
    Bench::new("vllm@0.33+lmcache@0.5", &[TierSpec::new("gpu", gpu), cpu], &[])
}

#[test]
fn behind_vllm_only_what_the_gpu_lacks_is_loaded() {
    // 5 usable blocks, chunks of two.
    let mut engine = behind(6, 9, 2);
    assert_eq!(engine.ask(&[1, 2, 3, 4, 5], 50), [0, 0]);
    assert_eq!(engine.next_out(1), [2, 4], "chunks are named by their last block");
    assert_eq!(engine.ask(&[6, 7], 20), [0, 0]);
    // The GPU kept 1, 2, 3 (5 and 4 were freed first): chunk 4 is read whole for its second half.
    assert_eq!(engine.ask(&[1, 2, 3, 4, 5], 50), [30, 10]);
    assert_eq!(engine.next_out(1), [7, 4, 2]);
    let hits = engine.events(EventKind::Hit);
    assert_eq!(hits, [vec![1, 2, 3], vec![4]]);
}

#[test]
fn a_prompt_that_never_fits_the_gpu_changes_nothing() {
    let mut engine = behind(4, 9, 2);
    assert_eq!(engine.ask(&[1, 2, 3, 4], 40), [0, 0]);
    assert_eq!((engine.resident(0), engine.resident(1)), (0, 0));
    engine.ask(&[1, 2], 20);
    assert_eq!((engine.resident(0), engine.resident(1)), (2, 1));
}

#[test]
fn a_request_of_hundreds_of_millions_of_unnamed_chunks_costs_nothing() {
    let most = u64::from(u32::MAX);
    for policy in ["lru", "lfu", "fifo", "mru"] {
        let tiers = [tier("cpu", most, policy), tier("disk", 3, policy), tier("remote", 2, "none")];
        let mut cache = Bench::new("lmcache", &tiers, &[("save_decode_cache", "true")]);
        cache.full(&[1, 2]);
        let chunks = (most + most) / 10;
        assert_eq!(cache.decode(&[1, 2, 3], most, &[], most), [20, 0, 0]);
        assert_eq!(cache.resident(0), chunks);
        assert_eq!((cache.resident(1), cache.resident(2)), (3, 2));
        let counters = &cache.out.counters()[1];
        assert_eq!((counters.admitted, counters.evicted), (chunks, chunks - 3));
        assert_eq!(counters.peak, 3);
    }
    for policy in ["lru", "arc"] {
        let tiers = [tier("cpu", most, policy), tier("fs", 3, policy)];
        let mut server =
            Bench::new("lmcache-mp", &tiers, &[("watermark", "0"), ("save_decode_cache", "true")]);
        for _ in 0..20 {
            server.decode(&[], most, &[], most);
        }
        let used = server.resident(0);
        assert!(used > most / 10 && used <= most, "{used}");
    }
}
