//! The models against their slow twins on random small forests.

use crate::engine::Release;
use crate::engine::tests::draws::{NAMES, SIZE, config, draw, steps_of};
use crate::engine::tests::steps::{Done, Steps};
use crate::hierarchy::TierSpec;
use crate::reference::engines::{kvbm_v1, kvbm_v2};
use proptest::prelude::*;

fn tiers(gpu: usize, cpu: Option<usize>, disk: Option<usize>) -> Vec<TierSpec> {
    let all = [("gpu", Some(gpu)), ("cpu", cpu), ("disk", disk)];
    all.iter().filter_map(|&(name, blocks)| Some(TierSpec::new(name, blocks? as u64))).collect()
}

fn steps(options: &[(&str, String)], tiers: &[TierSpec]) -> Steps {
    let options: Vec<(&str, &str)> = options.iter().map(|(key, value)| (*key, value.as_str())).collect();
    Steps::new("kvbm", Release(1, 4, 2), &options, tiers, NAMES, SIZE).unwrap()
}

fn below_gpu(done: &Done) -> Vec<String> {
    done.events.iter().filter(|event| !event.contains(" gpu ")).cloned().collect()
}

fn capacities() -> impl Strategy<Value = (usize, Option<usize>, Option<usize>)> {
    (0_usize..9, prop::option::of(0_usize..9), prop::option::of(0_usize..9))
}

fn order_name(head_first: bool) -> String {
    if head_first { "head_first" } else { "tail_first" }.to_owned()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn v1_equals_its_twin(
        draws in prop::collection::vec(draw(), 0..40),
        (gpu, cpu, disk) in capacities(),
        (batch, head_first) in (1_usize..5, any::<bool>()),
        filter in prop::option::of((1_u64..5, 1_i64..20, 1_usize..12)),
    ) {
        let (threshold, interval, entries) = filter.unwrap_or((2, 600, 9));
        let given = [
            ("transfer_batch_blocks", batch.to_string()),
            ("release_order", order_name(head_first)),
            ("disk_filter", filter.is_some().to_string()),
            ("disk_filter_threshold", threshold.to_string()),
            ("disk_filter_interval", format!("{interval} s")),
            ("disk_filter_entries", entries.to_string()),
        ];
        let mut fast = steps(&given, &tiers(gpu, cpu, disk));
        let mut slow = kvbm_v1::Manager::new(kvbm_v1::Options { gpu, cpu, disk, batch, head_first, filter });
        for (at, step) in steps_of(&draws, false).iter().enumerate() {
            let done = fast.run(step);
            slow.serve(&step.request(at, SIZE));
            prop_assert_eq!(&done.hit_tokens, &slow.hit_tokens, "request {}", at);
            prop_assert_eq!(below_gpu(&done), slow.events.clone(), "request {}", at);
            for (tier, spec) in tiers(gpu, cpu, disk).iter().enumerate().skip(1) {
                prop_assert_eq!(fast.content(tier), slow.content(&spec.name), "request {}", at);
            }
        }
        fast.finish();
    }

    /// The tiers below change nothing on the GPU but why a block came. (Without them vLLM decodes in one step, so
    /// that stores come later than here; evictions are the same.)
    #[test]
    fn the_gpu_is_that_of_vllm(draws in prop::collection::vec(draw(), 0..40), (gpu, cpu, disk) in capacities()) {
        let mut vllm =
            Steps::new("vllm", Release(0, 33, 0), &[], &tiers(gpu, None, None), NAMES, SIZE).unwrap();
        let engines = ["v1", "v2"].map(|engine| [("engine", engine.to_owned())]);
        let mut kvbm = engines.map(|options| steps(&options, &tiers(gpu, cpu, disk)));
        for step in steps_of(&draws, false) {
            let evictions = |done: &Done| -> Vec<String> {
                done.events.iter().filter(|event| event.starts_with("evict gpu ")).cloned().collect()
            };
            let wanted = vllm.run(&step);
            for kvbm in &mut kvbm {
                let done = kvbm.run(&step);
                prop_assert_eq!(done.hit_tokens[0], wanted.hit_tokens[0]);
                prop_assert_eq!(evictions(&done), evictions(&wanted));
                prop_assert_eq!(kvbm.content(0), vllm.content(0));
            }
        }
    }

    #[test]
    fn v2_equals_its_twin(
        draws in prop::collection::vec(draw(), 0..40),
        (gpu, cpu, disk) in capacities(),
        (batch, head_first, min_count) in (1_usize..5, any::<bool>(), 0_u32..3),
        (inactive, to_host, to_disk) in (0_usize..4, 0_usize..3, 0_usize..3),
    ) {
        use kvbm_v2::{Edge, Inactive};
        let edges = [("presence", Edge::Presence), ("presence_lfu", Edge::PresenceLfu), ("pass_all", Edge::PassAll)];
        let orders = [
            ("lineage", Inactive::Lineage),
            ("lineage_fifo", Inactive::LineageFifo),
            ("lru", Inactive::Lru),
            ("multi_lru", Inactive::MultiLru([2, 3, 5])),
        ];
        let given = [
            ("engine", "v2".to_owned()),
            ("transfer_batch_blocks", batch.to_string()),
            ("release_order", order_name(head_first)),
            ("inactive", orders[inactive].0.to_owned()),
            ("multi_lru_thresholds", "2 3 5".to_owned()),
            ("g1_to_g2", edges[to_host].0.to_owned()),
            ("g2_to_g3", edges[to_disk].0.to_owned()),
            ("min_lfu_count", min_count.to_string()),
            ("sketch_capacity", "65536".to_owned()),
        ];
        let mut fast = steps(&given, &tiers(gpu, cpu, disk));
        let mut slow = kvbm_v2::Manager::new(kvbm_v2::Options {
            gpu,
            cpu,
            disk,
            batch,
            head_first,
            inactive: orders[inactive].1,
            to_host: edges[to_host].1,
            to_disk: edges[to_disk].1,
            min_count,
        });
        for (at, step) in steps_of(&draws, false).iter().enumerate() {
            let done = fast.run(step);
            slow.serve(&step.request(at, SIZE));
            prop_assert_eq!(&done.hit_tokens, &slow.hit_tokens, "request {}", at);
            prop_assert_eq!(below_gpu(&done), slow.events.clone(), "request {}", at);
        }
        for (tier, spec) in tiers(gpu, cpu, disk).iter().enumerate().skip(1) {
            prop_assert_eq!(fast.content(tier), slow.drain(&spec.name));
        }
        fast.finish();
    }
}
