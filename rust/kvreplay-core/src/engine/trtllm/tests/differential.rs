//! The models against their slow twins on random small forests.

use crate::engine::Release;
use crate::engine::tests::draws::{NAMES, SIZE, config, draw, steps_of};
use crate::engine::tests::steps::Steps;
use crate::hierarchy::TierSpec;
use crate::reference::engines::{trtllm_v1, trtllm_v2};
use proptest::prelude::*;

fn tiers(capacities: &[usize]) -> Vec<TierSpec> {
    let names = ["gpu", "cpu", "disk"].iter().zip(capacities);
    names.map(|(name, &blocks)| TierSpec::new(name, blocks as u64)).collect()
}

fn options_of(o: &trtllm_v1::Options) -> Vec<(&'static str, String)> {
    let mut options = vec![
        ("priority_tokens", o.priority_tokens.to_string()),
        ("decode_priority", o.decode_priority.to_string()),
        ("secondary_offload_min_priority", o.min_priority.to_string()),
        ("emptied_slot", if o.emptied_to_front { "front" } else { "back" }.to_owned()),
        ("partial_reuse", o.partial_reuse.to_string()),
        ("copy_on_partial_reuse", o.copy_on_partial_reuse.to_string()),
    ];
    if let Some(priority) = o.priority {
        options.push(("priority", priority.to_string()));
        if o.duration_us > 0 {
            options.push(("duration", format!("{} s", o.duration_us / 1_000_000)));
        }
    }
    options
}

fn options() -> impl Strategy<Value = trtllm_v1::Options> {
    let sizes = (0_usize..9, 0_usize..7);
    let priorities = (prop::option::of(20_u8..50), 0_u64..12, 0_i64..20, 20_u8..50, 20_u8..50);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (sizes, priorities, flags).prop_map(|((gpu, host), (priority, range, seconds, decode, min), flags)| {
        trtllm_v1::Options {
            capacities: [gpu, host],
            priority,
            priority_tokens: range,
            duration_us: if priority.is_some() { seconds * 1_000_000 } else { 0 },
            decode_priority: decode,
            min_priority: min,
            emptied_to_front: flags.0,
            partial_reuse: flags.1,
            copy_on_partial_reuse: flags.2,
        }
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn generation_1_equals_its_twin(draws in prop::collection::vec(draw(), 0..40), o in options()) {
        let given = options_of(&o);
        let given: Vec<(&str, &str)> = given.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let mut fast = Steps::new("trtllm", Release(1, 0, 0), &given, &tiers(&o.capacities), NAMES, SIZE).unwrap();
        let mut slow = trtllm_v1::Manager::new(o);
        for (at, step) in steps_of(&draws, true).iter().enumerate() {
            let done = fast.run(step);
            slow.serve(&step.request(at, SIZE));
            prop_assert_eq!(&done.hit_tokens, &slow.hit_tokens, "request {}", at);
            prop_assert_eq!(&done.events, &slow.events, "request {}", at);
            for level in 0..2 {
                prop_assert_eq!(fast.content(level), slow.content(level), "request {}", at);
            }
        }
        fast.finish();
    }

    #[test]
    fn generation_2_equals_its_twin(
        draws in prop::collection::vec(draw(), 0..40),
        capacities in prop::collection::vec(0_usize..7, 1..4),
        o in options(),
    ) {
        let priority = o.priority.unwrap_or(35).to_string();
        let (range, decode) = (o.priority_tokens.to_string(), o.decode_priority.to_string());
        let given = [("priority", &*priority), ("priority_tokens", &*range), ("decode_priority", &*decode)];
        let mut fast = Steps::new("trtllm", Release(2, 0, 0), &given, &tiers(&capacities), NAMES, SIZE).unwrap();
        let priority = Some(o.priority.unwrap_or(35));
        let mut slow =
            trtllm_v2::Manager::new(capacities.clone(), priority, o.priority_tokens, o.decode_priority);
        for (at, step) in steps_of(&draws, true).iter().enumerate() {
            let done = fast.run(step);
            slow.serve(&step.request(at, SIZE));
            prop_assert_eq!(&done.hit_tokens, &slow.hit_tokens, "request {}", at);
            prop_assert_eq!(&done.events, &slow.events, "request {}", at);
            for level in 0..capacities.len() {
                prop_assert_eq!(fast.content(level), slow.content(level), "request {}", at);
            }
        }
        fast.finish();
    }
}
