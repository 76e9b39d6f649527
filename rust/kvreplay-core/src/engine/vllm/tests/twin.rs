//! The model against the twin that was written from the rules' text, for every release.

use crate::engine::vllm::RELEASES;
use crate::engine::{EngineRequest, Profile, Recorder};
use crate::hierarchy::{EventKind, TierSpec};
use crate::reference::engines::vllm::{Cpu, Outcome, Request, Rules, Vllm};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::HashMap;

const BLOCK_TOKENS: u32 = 4;

/// A request before its blocks are numbered: symbols of a path, how many are listed, tokens behind the prompt's full
/// blocks, decoded tokens and how many of their blocks are listed.
type Draft = (Vec<u8>, usize, u64, u64, usize);

#[derive(Debug, Clone)]
struct Case {
    release: usize,
    gpu_blocks: Option<u64>,
    cpu: Option<(u64, u32, bool)>,
    threshold: Option<(u32, usize)>,
    decode: bool,
    drafts: Vec<Draft>,
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let symbols = prop::collection::vec(prop::sample::select(vec![0_u8, 0, 0, 1]), 0..12);
    let draft =
        (symbols, 0..14_usize, 0..4_u64, prop::sample::select(vec![0_u64, 0, 0, 3, 4, 9]), 0..3_usize);
    prop::collection::vec(draft, 1..40)
}

fn cases() -> impl Strategy<Value = Case> {
    let cpu = prop::option::weighted(0.85, (0..24_u64, 1..4_u32, any::<bool>()));
    let threshold = prop::option::weighted(0.4, (2..4_u32, 1..30_usize));
    let gpu = prop::option::weighted(0.7, 1..22_u64);
    (0..RELEASES.len(), gpu, cpu, threshold, any::<bool>(), drafts()).prop_map(
        |(release, gpu_blocks, cpu, threshold, decode, drafts)| Case {
            release,
            gpu_blocks,
            cpu,
            threshold,
            decode,
            drafts,
        },
    )
}

/// Paths as numbers: equal prefixes get equal blocks.
fn requests(drafts: &[Draft]) -> (Vec<Request>, u32) {
    let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut made = Vec::new();
    for (symbols, listed, tail_tokens, decoded_tokens, named) in drafts {
        let mut number = |depth: usize| {
            let mut path: Vec<u8> = symbols.iter().take(depth + 1).copied().collect();
            path.resize(depth + 1, 2);
            let next = numbers.len() as u32;
            *numbers.entry(path).or_insert(next)
        };
        let full = symbols.len();
        let listed = (0..full.min(*listed)).map(&mut number).collect();
        let decoded = (full..full + named).map(&mut number).collect();
        let prompt_tokens = full as u64 * u64::from(BLOCK_TOKENS) + tail_tokens;
        made.push(Request { listed, decoded, prompt_tokens, decoded_tokens: *decoded_tokens });
    }
    (made, numbers.len() as u32)
}

/// Options as a profile takes them.
type Options = Vec<(String, String)>;

/// Tiers and options of a case, as far as the release has them; `None` where it has nothing of it.
fn parts(case: &Case) -> Option<(Vec<TierSpec>, Options, Rules)> {
    let minor = RELEASES[case.release].1;
    let cpu = case.cpu.filter(|_| minor >= 11);
    let threshold = case.threshold.filter(|_| minor >= 18);
    let decode = case.decode || minor < 23;
    let mut tiers = Vec::new();
    if let Some(blocks) = case.gpu_blocks {
        tiers.push(TierSpec::new("gpu", blocks));
    }
    if let Some((chunks, chunk_blocks, arc)) = cpu {
        tiers.push(TierSpec {
            policy: if arc { "arc" } else { "lru" }.to_owned(),
            admission: threshold
                .map_or("always".to_owned(), |(n, size)| format!("store_threshold({n}, tracker={size})")),
            chunk_blocks,
            ..TierSpec::new("cpu", chunks * u64::from(chunk_blocks))
        });
    }
    let rules = Rules {
        block_tokens: u64::from(BLOCK_TOKENS),
        gpu: case.gpu_blocks.map(|blocks| (blocks as usize - 1, minor < 23)),
        cpu: cpu.map(|(chunks, chunk_blocks, arc)| Cpu {
            minor,
            chunks: chunks as usize,
            chunk_blocks: u64::from(chunk_blocks),
            arc,
            threshold,
            decode,
        }),
    };
    let options = vec![("offload_decode".to_owned(), decode.to_string())];
    (!tiers.is_empty()).then_some((tiers, options, rules))
}

/// Replays a case with the model and checks it after every request.
fn outcomes(
    case: &Case,
    tiers: &[TierSpec],
    options: &[(String, String)],
    requests: &[Request],
    blocks: u32,
) -> Vec<Outcome> {
    let profile = Profile::parse(&format!("vllm@{}", RELEASES[case.release]), options).unwrap();
    let mut model = profile.build_for(tiers, blocks, BLOCK_TOKENS, false).unwrap();
    let mut out = Recorder::new(tiers, blocks, true);
    let mut rows = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let request = EngineRequest {
            index: index as u32,
            listed: &request.listed,
            prompt_tokens: request.prompt_tokens,
            decoded: &request.decoded,
            decoded_tokens: request.decoded_tokens,
            block_tokens: BLOCK_TOKENS,
            now_us: None,
        };
        out.begin(request.index);
        model.serve(&request, &mut out);
        out.end(&request);
        model.validate().unwrap();
        rows.push(out.rows().to_vec());
    }
    let content: Vec<Vec<u32>> = (0..tiers.len()).map(|tier| model.content(tier)).collect();
    let (events, _) = out.finish(&content);
    let mut outcomes = vec![Outcome::default(); requests.len()];
    for (outcome, row) in outcomes.iter_mut().zip(rows) {
        for (tier, row) in tiers.iter().zip(row) {
            *(if tier.name == "gpu" { &mut outcome.gpu_hit } else { &mut outcome.cpu_hit }) = row.tokens;
        }
    }
    for i in 0..events.len() {
        let outcome = &mut outcomes[events.request[i] as usize];
        let is_gpu = tiers[usize::from(events.tier[i])].name == "gpu";
        match (events.kind[i], is_gpu) {
            (EventKind::Evict, true) => outcome.gpu_evicted.push(events.block[i]),
            (EventKind::Evict, false) => outcome.cpu_evicted.push(events.block[i]),
            (EventKind::Insert, false) => {
                outcome.cpu_stored.insert(events.block[i]);
            }
            _ => {}
        }
    }
    outcomes
}

/// Prompts that share nearly everything, a CPU tier too small for them and a GPU that is not: offers are refused and
/// repeated, and counts get there one by one.
fn tight_cases() -> impl Strategy<Value = Case> {
    // One path and its prefixes, now and then with another end.
    let symbols = (0..9_usize, any::<bool>(), 0..3_usize).prop_map(|(same, other, more)| {
        let end = if other { more } else { 0 };
        [vec![0; same], vec![1; end]].concat()
    });
    let decoded = prop::sample::select(vec![0_u64, 0, 4, 8, 12]);
    let draft = (symbols, Just(14_usize), 0..4_u64, decoded, Just(3_usize));
    let cpu = (1..6_u64, prop::sample::select(vec![1_u32, 1, 1, 2]), any::<bool>());
    let threshold = prop::option::weighted(0.7, (2..5_u32, 1..12_usize));
    let drafts = prop::collection::vec(draft, 10..40);
    (10..RELEASES.len(), 8..40_u64, cpu, threshold, any::<bool>(), drafts).prop_map(
        |(release, gpu_blocks, cpu, threshold, decode, drafts)| Case {
            release,
            gpu_blocks: Some(gpu_blocks),
            cpu: Some(cpu),
            threshold,
            decode,
            drafts,
        },
    )
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5),
        ..ProptestConfig::default()
    }
}

/// Hits, evictions and stores are those of the twin.
fn agree(case: &Case) -> Result<(), TestCaseError> {
    let Some((tiers, options, rules)) = parts(case) else { return Ok(()) };
    let (requests, blocks) = requests(&case.drafts);
    let got = outcomes(case, &tiers, &options, &requests, blocks);
    let mut twin = Vllm::new(rules);
    for (i, (request, got)) in requests.iter().zip(got).enumerate() {
        prop_assert_eq!(got, twin.serve(request), "request {}", i);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(1000))]
    #[test]
    fn any_requests_give_what_the_twin_gives(case in cases()) {
        agree(&case)?;
    }
}

proptest! {
    #![proptest_config(config(3000))]
    #[test]
    fn refused_offers_give_what_the_twin_gives(case in tight_cases()) {
        agree(&case)?;
    }
}
