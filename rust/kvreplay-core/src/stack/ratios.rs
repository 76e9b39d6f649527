//! The named hit ratios: one trace has half a dozen honest ones, so each carries its counts.

use crate::table::{Table, Values};
use crate::trace::Trace;

/// A hit ratio with its name and counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// Name, `token_hit_ratio` and so on.
    pub name: &'static str,
    /// The ratio; `None` when the denominator is 0.
    pub value: Option<f64>,
    /// What is counted; `None` for a mean of ratios.
    pub numerator: Option<u64>,
    /// Out of what; `None` for a mean of ratios.
    pub denominator: Option<u64>,
    /// What it means.
    pub definition: &'static str,
}

impl Ratio {
    fn of(name: &'static str, numerator: u64, denominator: u64, definition: &'static str) -> Self {
        let value = (denominator > 0).then(|| numerator as f64 / denominator as f64);
        Self { name, value, numerator: Some(numerator), denominator: Some(denominator), definition }
    }
}

#[derive(Default)]
struct Sums {
    hit_tokens: u64,
    upper_tokens: u64,
    input_tokens: u64,
    hit_blocks: u64,
    blocks: u64,
    hit_full: u64,
    full: u64,
    hit_requests: u64,
    full_hits: u64,
    requests: u64,
    mean: f64,
}

impl Sums {
    fn add(&mut self, trace: &Trace, request: usize, hit: u32) {
        let tokens = trace.tokens(request, hit);
        let input = u64::from(trace.requests.input_tokens[request]);
        let listed = trace.path_len(request);
        let full = trace.full_blocks(request);
        // Had the ids been of single tokens, the shared prefix could reach into the next block, not fill it.
        let more = if hit > 0 { u64::from(trace.block_tokens_of(request)) - 1 } else { 0 };
        self.hit_tokens += tokens;
        self.upper_tokens += (tokens + more).min(input);
        self.input_tokens += input;
        self.hit_blocks += u64::from(hit);
        self.blocks += u64::from(listed);
        self.hit_full += u64::from(hit.min(full));
        self.full += u64::from(full);
        self.hit_requests += u64::from(hit > 0);
        self.full_hits += u64::from(hit == listed && listed > 0);
        self.requests += 1;
        self.mean += if input > 0 { tokens as f64 / input as f64 } else { 0.0 };
    }
}

/// All ratios of one cache from its hit blocks per request (of [`super::ceiling`], or at one capacity).
///
/// # Panics
/// When `hit_blocks` does not hold one entry per request.
#[must_use]
pub fn ratios(trace: &Trace, hit_blocks: &[u32]) -> Vec<Ratio> {
    assert_eq!(hit_blocks.len(), trace.len(), "one entry per request");
    let mut sums = Sums::default();
    for (request, &hit) in hit_blocks.iter().enumerate() {
        sums.add(trace, request, hit);
    }
    vec![
        Ratio::of("token_hit_ratio", sums.hit_tokens, sums.input_tokens, "hit tokens / input tokens"),
        Ratio::of(
            "token_hit_ratio_upper",
            sums.upper_tokens,
            sums.input_tokens,
            "hit tokens if every hit reached one token short of one more block, within the input / input tokens",
        ),
        Ratio::of("block_hit_ratio", sums.hit_blocks, sums.blocks, "hit blocks / listed blocks"),
        Ratio::of("full_block_hit_ratio", sums.hit_full, sums.full, "hit full blocks / full blocks"),
        Ratio::of("request_hit_ratio", sums.hit_requests, sums.requests, "requests with any hit / requests"),
        Ratio::of(
            "request_full_hit_ratio",
            sums.full_hits,
            sums.requests,
            "requests whose listed blocks all hit (and that list at least one) / requests",
        ),
        Ratio {
            name: "mean_request_token_hit_ratio",
            value: (sums.requests > 0).then(|| sums.mean / sums.requests as f64),
            numerator: None,
            denominator: None,
            definition: "mean over requests of hit tokens / input tokens (0 for a request without input)",
        },
    ]
}

/// Ratios as columns `name`, `value`, `numerator`, `denominator`, `definition`.
#[must_use]
pub fn ratios_table(ratios: &[Ratio]) -> Table {
    let count = |of: fn(&Ratio) -> Option<u64>| {
        Values::MaybeInt(ratios.iter().map(|ratio| of(ratio).map(|count| count as i64)).collect())
    };
    let text = |of: fn(&Ratio) -> &'static str| {
        Values::Text(ratios.iter().map(|ratio| Some(of(ratio).to_owned())).collect())
    };
    Table::new()
        .with("name", text(|ratio| ratio.name))
        .with("value", Values::Float(ratios.iter().map(|ratio| ratio.value).collect()))
        .with("numerator", count(|ratio| ratio.numerator))
        .with("denominator", count(|ratio| ratio.denominator))
        .with("definition", text(|ratio| ratio.definition))
}
