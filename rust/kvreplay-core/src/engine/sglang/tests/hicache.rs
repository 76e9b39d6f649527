//! HiCache by hand: the tree and what came and went, request by request.

use super::{Run, shape, tier, told};
use crate::engine::EngineModel;
use crate::error::Error;

/// HiCache with pools of these many pages (device, host, storage); every hit is worth a load.
fn run(pages: &[u64], options: &[(&str, &str)]) -> Run {
    let names = ["gpu", "cpu", "storage"];
    let tiers: Vec<_> = names.iter().zip(pages).map(|(name, &pages)| tier(name, pages, "lru")).collect();
    let mut all = vec![("load_back_threshold", "1"), ("prefetch_threshold", "2")];
    all.retain(|(name, _)| !options.iter().any(|(other, _)| other == name));
    all.extend(options);
    Run::new(&tiers, 20, &all).unwrap()
}

fn serve(run: &mut Run, path: &[u32]) -> Vec<u64> {
    run.serve(path, 0, &[], 0)
}

#[test]
fn host_memory_no_larger_than_the_device_adds_nothing() {
    let mut run = run(&[4, 4], &[]);
    assert_eq!(serve(&mut run, &[0, 1, 2]), [0, 0]);
    assert_eq!(shape(&run.model), "0-2*");
    // 0-2 leaves the device and stays in host memory, until the copy of 3-5 needs its place.
    assert_eq!(serve(&mut run, &[3, 4, 5]), [0, 0]);
    assert_eq!(shape(&run.model), "3-5*");
    assert_eq!(serve(&mut run, &[0, 1, 2]), [0, 0]);
    let (events, counters) = run.finish();
    let moves = "gpu-0 gpu-1 gpu-2 gpu+3 gpu+4 gpu+5 cpu-0 cpu-1 cpu-2 cpu+3 cpu+4 cpu+5";
    assert_eq!(told(&events, 1), moves);
    assert_eq!((counters[1].inserted_compute, counters[1].evicted, counters[1].served), (9, 6, 0));
}

#[test]
fn the_copy_of_a_node_on_the_device_is_pinned() {
    let mut run = run(&[6, 4], &[]);
    serve(&mut run, &[0, 1, 2]);
    // Host memory has room for one page, and 0-2 is on the device: 3-5 is not copied.
    serve(&mut run, &[3, 4, 5]);
    assert_eq!(shape(&run.model), "0-2* 3-5");
    assert_eq!(run.model.content(1), [0, 1, 2]);
    // 0-2 leaves first and stays in host memory. The copy of 6-8 takes its place.
    serve(&mut run, &[6, 7, 8]);
    assert_eq!(shape(&run.model), "3-5 6-8*");
    // 3-5 leaves without a copy.
    serve(&mut run, &[9]);
    assert_eq!(shape(&run.model), "6-8* 9*");
    let (events, counters) = run.finish();
    assert_eq!(told(&events, 3), "gpu-3 gpu-4 gpu-5 gpu+9 cpu+9");
    assert_eq!(counters[1].no_room, 3);
}

#[test]
fn pages_in_host_memory_are_loaded_and_keep_their_copy() {
    let mut run = run(&[4, 8], &[]);
    serve(&mut run, &[0, 1, 2]);
    serve(&mut run, &[3, 4, 5]);
    assert_eq!(shape(&run.model), "0-2~ 3-5*");
    // The last token is not looked up: 0-1 is loaded and 2 computed, it keeps its copy too.
    assert_eq!(serve(&mut run, &[0, 1, 2]), [0, 2]);
    assert_eq!(shape(&run.model), "0-1*{2*} 3-5~");
    let (events, counters) = run.finish();
    assert_eq!(told(&events, 2), "gpu-3 gpu-4 gpu-5 gpu+0 gpu+1 gpu+2");
    assert_eq!((counters[0].inserted_promotion, counters[0].inserted_compute), (2, 7));
}

#[test]
fn a_short_run_in_host_memory_is_computed_again() {
    let mut run = run(&[4, 8], &[("load_back_threshold", "3")]);
    for path in [[0, 1, 2], [3, 4, 5], [0, 1, 2]] {
        assert_eq!(serve(&mut run, &path), [0, 0]);
    }
    assert_eq!(shape(&run.model), "0-1*{2*} 3-5~");
    let (_, counters) = run.finish();
    assert_eq!((counters[0].inserted_promotion, counters[0].inserted_compute), (0, 9));
}

#[test]
fn selective_copies_what_a_second_request_inserts() {
    let mut run = run(&[8, 8], &[("write_policy", "write_through_selective")]);
    serve(&mut run, &[0, 1, 2]);
    assert_eq!(shape(&run.model), "0-2");
    serve(&mut run, &[0, 1, 3]);
    assert_eq!(shape(&run.model), "0-1*{2 3}");
    // 2 is inserted a second time; its parent has a copy already.
    serve(&mut run, &[0, 1, 2]);
    assert_eq!(shape(&run.model), "0-1*{2* 3}");
}

#[test]
fn ancestors_are_copied_first() {
    let mut run = run(&[8, 3], &[("write_policy", "write_through_selective")]);
    // 0-1 finds no room the first time it is due, because 7-8 is on the device and pinned.
    serve(&mut run, &[7, 8]);
    run.serve(&[7, 8, 9], 0, &[], 0);
    assert_eq!(shape(&run.model), "7-8*{9}");
    serve(&mut run, &[0, 1, 2]);
    serve(&mut run, &[0, 1, 3]);
    assert_eq!(shape(&run.model), "7-8*{9} 0-1{2 3}");
    // Now 3 is due. 0-1 comes first, finds no room, and so 3 gets no copy though there is room for it.
    serve(&mut run, &[0, 1, 3]);
    assert_eq!(shape(&run.model), "7-8*{9} 0-1{2 3}");
    let (_, counters) = run.finish();
    assert_eq!(counters[1].resident, 2);
}

#[test]
fn writing_back_copies_what_leaves_and_gives_up_what_it_holds_twice() {
    let mut run = run(&[4, 5], &[("write_policy", "write_back")]);
    serve(&mut run, &[0, 1, 2]);
    assert_eq!(shape(&run.model), "0-2");
    serve(&mut run, &[3, 4]);
    assert_eq!(shape(&run.model), "0-2~ 3-4");
    // 0-1 comes back, and 3-4 makes room for 5. Both are in host memory then.
    assert_eq!(serve(&mut run, &[0, 1, 5]), [0, 2]);
    assert_eq!(shape(&run.model), "0-1*{2~ 5} 3-4~");
    // 5 leaves. 0-1 is on the device with something below it, so its copy goes first to make room for 5. Then
    // 0-1 leaves itself, and 3-4 makes room for it, the leaf of host memory accessed longest ago.
    serve(&mut run, &[6, 7, 8]);
    assert_eq!(shape(&run.model), "0-1~{2~ 5~} 6-8");
    let (events, _) = run.finish();
    assert_eq!(told(&events, 2), "gpu+0 gpu+1 cpu+3 cpu+4 gpu-3 gpu-4 gpu+5");
    let moves = "cpu-0 cpu-1 cpu+5 gpu-5 cpu-3 cpu-4 cpu+0 cpu+1 gpu-0 gpu-1 gpu+6 gpu+7 gpu+8";
    assert_eq!(told(&events, 3), moves);
}

#[test]
fn writing_back_without_room_loses_the_node() {
    let mut run = run(&[4, 4], &[("write_policy", "write_back")]);
    serve(&mut run, &[0, 1, 2]);
    serve(&mut run, &[3, 4, 5]);
    assert_eq!(shape(&run.model), "0-2~ 3-5");
    // 0-1 is in use and only 2 can go: 3-5 finds two pages, and is lost.
    assert_eq!(serve(&mut run, &[0, 1, 2]), [0, 2]);
    assert_eq!(shape(&run.model), "0-1*{2}");
    let (events, _) = run.finish();
    assert_eq!(told(&events, 2), "cpu-2 gpu-3 gpu-4 gpu-5 gpu+0 gpu+1 gpu+2");
}

#[test]
fn host_memory_gives_up_leaves_for_what_leaves_the_device() {
    let mut run = run(&[5, 3], &[("write_policy", "write_back")]);
    serve(&mut run, &[0, 1, 2, 3]);
    serve(&mut run, &[0, 1, 4]);
    assert_eq!(shape(&run.model), "0-1{2-3 4}");
    // 2-3 goes to host memory and 4 after it. 0-1 does not fit beside them: host memory gives up 2-3, the
    // leaf accessed longest ago.
    serve(&mut run, &[5, 6, 7, 8, 9]);
    assert_eq!(shape(&run.model), "0-1~{4~} 5-9");
    let (events, _) = run.finish();
    let moves = "cpu+2 cpu+3 gpu-2 gpu-3 cpu+4 gpu-4 cpu-2 cpu-3 cpu+0 cpu+1 gpu-0 gpu-1";
    assert_eq!(told(&events, 2), format!("{moves} gpu+5 gpu+6 gpu+7 gpu+8 gpu+9"));
}

#[test]
fn a_node_larger_than_host_memory_empties_it_and_is_lost() {
    let mut run = run(&[5, 2], &[("write_policy", "write_back")]);
    serve(&mut run, &[0, 1, 2, 3, 4]);
    serve(&mut run, &[0, 1, 2, 5]);
    assert_eq!(shape(&run.model), "0-2{3-4~ 5}");
    // 5 takes the place of 3-4. 0-2 does not fit even without 5.
    serve(&mut run, &[6, 7, 8, 9]);
    assert_eq!(shape(&run.model), "6-9");
    let (events, counters) = run.finish();
    let moves = "cpu-3 cpu-4 cpu+5 gpu-5 cpu-5 gpu-0 gpu-1 gpu-2";
    assert_eq!(told(&events, 2), format!("{moves} gpu+6 gpu+7 gpu+8 gpu+9"));
    assert_eq!(counters[1].no_room, 3);
}

#[test]
fn pages_in_storage_come_back_through_host_memory() {
    let mut run = run(&[4, 6, 100], &[]);
    assert_eq!(serve(&mut run, &[0, 1, 2, 3]), [0, 0, 0]);
    assert_eq!(serve(&mut run, &[4, 5, 6, 7]), [0, 0, 0]);
    assert_eq!(shape(&run.model), "4-7*");
    assert_eq!(run.model.content(2), [7, 6, 5, 4, 3, 2, 1, 0]);
    // Three pages are looked up and found in storage; two fit into host memory, which is still worth it.
    assert_eq!(serve(&mut run, &[0, 1, 2, 3]), [0, 0, 2]);
    assert_eq!(shape(&run.model), "0-1*{2-3*}");
    assert_eq!(run.model.content(2), [3, 2, 1, 0, 7, 6, 5, 4]);
    let (events, counters) = run.finish();
    let fetch = "cpu+0 cpu+1 gpu-4 gpu-5 gpu-6 gpu-7 gpu+0 gpu+1 gpu+2 gpu+3";
    assert_eq!(told(&events, 2), format!("{fetch} cpu-4 cpu-5 cpu-6 cpu-7 cpu+2 cpu+3"));
    assert_eq!((counters[1].inserted_promotion, counters[2].served, counters[2].already_held), (2, 2, 2));
}

#[test]
fn storage_is_not_asked_for_little_nor_used_for_little() {
    let mut run = run(&[4, 6, 100], &[("prefetch_threshold", "3")]);
    serve(&mut run, &[0, 1, 2, 3]);
    serve(&mut run, &[4, 5, 6, 7]);
    // Three pages are found, but only two fit.
    assert_eq!(serve(&mut run, &[0, 1, 2, 3]), [0, 0, 0]);
    // Two pages are unknown.
    assert_eq!(serve(&mut run, &[4, 5, 6]), [0, 0, 0]);
}

#[test]
fn storage_evicts_single_pages_down_to_its_share() {
    let mut run = run(&[5, 5, 4], &[("storage_eviction_ratio", "0.5")]);
    serve(&mut run, &[0, 1, 2, 3, 4]);
    assert_eq!(run.model.content(2), [4, 3]);
    let (events, counters) = run.finish();
    let stored = "storage+0 storage+1 storage+2 storage+3 storage-0 storage-1 storage-2 storage+4";
    assert!(told(&events, 0).ends_with(stored), "{}", told(&events, 0));
    assert_eq!((counters[2].inserted_compute, counters[2].evicted), (5, 3));
}

#[test]
fn what_hicache_does_not_have_is_refused() {
    let gpu = || tier("gpu", 4, "lfu");
    let cpu = |policy| tier("cpu", 4, policy);
    for (tiers, options, what) in [
        (vec![gpu(), tier("storage", 4, "lru")], vec![], "SGLang without a tier \"cpu\""),
        (vec![gpu(), cpu("mru")], vec![], "policy mru of tier cpu beside lfu of tier gpu"),
        (vec![gpu(), cpu("lfu")], vec![("write_policy", "x")], "sglang: write_policy=\"x\" is not valid"),
        (
            vec![gpu(), cpu("lru")],
            vec![("storage_eviction_ratio", "0")],
            "sglang: storage_eviction_ratio=0 is out of range",
        ),
        (
            vec![gpu(), cpu("lru")],
            vec![("load_back_threshold", "-1")],
            "sglang: load_back_threshold=-1 is out of range",
        ),
    ] {
        let Err(Error::Config { message, .. }) = Run::new(&tiers, 4, &options) else {
            panic!("{what}: taken");
        };
        assert_eq!(message, what);
    }
    assert!(Run::new(&[gpu(), cpu("lfu")], 4, &[]).is_ok());
}
