//! Random numbers and samplers, the same on every platform.
//!
//! Generator: xoshiro256++ 1.0 (Blackman and Vigna, 2019), seeded by splitmix64 (Steele, Lea and Flood,
//! OOPSLA 2014), whose finaliser also serves as the hash behind block ids.

use super::math::{exp, ln};

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of splitmix64: a bijection of 64 bits in which every input bit moves every output bit.
pub(super) fn finalize(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A hash of two numbers in order.
pub(super) fn mix(a: u64, b: u64) -> u64 {
    finalize(finalize(a.wrapping_add(GOLDEN)).rotate_left(17).wrapping_add(b.wrapping_mul(GOLDEN)))
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(super) struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of a seed; different `stream` numbers of one seed are independent.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut at = mix(seed, stream);
        let state = std::array::from_fn(|_| {
            at = at.wrapping_add(GOLDEN);
            finalize(at)
        });
        Self { state }
    }

    /// 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let out = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let t = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= t;
        *s3 = s3.rotate_left(45);
        out
    }

    /// A multiple of 2^-53 in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `p`.
    pub(super) fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// An exponential variate of mean 1, by comparisons alone (von Neumann, "Various techniques used in
    /// connection with random digits", 1951).
    pub(super) fn exponential(&mut self) -> f64 {
        // Count failed rounds: a round fails with probability 1/e, so 2^16 in a row do not happen.
        for whole in 0..1_u32 << 16 {
            let first = self.unit();
            let mut previous = first;
            let mut length = 1_u32;
            loop {
                let next = self.unit();
                if next >= previous {
                    break;
                }
                previous = next;
                length += 1;
            }
            if length % 2 == 1 {
                return f64::from(whole) + first;
            }
        }
        f64::from(1_u32 << 16)
    }

    /// A nearly normal variate of mean 0 and variance 1: the sum of twelve uniforms, less 6. Its tails end
    /// at +-6, which bounds every length drawn from it.
    pub(super) fn normal(&mut self) -> f64 {
        let mut sum = 0.0;
        for _ in 0..12 {
            sum += self.unit();
        }
        sum - 6.0
    }
}

/// A time some microseconds later. Times end at the largest one: no rate is so low that they turn around.
pub(super) fn later(time_us: i64, gap_us: f64) -> i64 {
    time_us.saturating_add(gap_us as i64)
}

/// A log-normal quantity: half of its values lie below the median.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogNormal {
    median: f64,
    sigma: f64,
}

/// No value exceeds this multiple of its median, so a request's size is bounded by its parameters.
const MOST_MEDIANS: f64 = 20.0;

impl LogNormal {
    pub(super) fn new(median: f64, sigma: f64) -> Self {
        Self { median, sigma }
    }

    /// A value, at most 20 medians.
    pub(super) fn sample(self, random: &mut Random) -> f64 {
        self.median * exp(self.sigma * random.normal()).min(MOST_MEDIANS)
    }

    /// A length in tokens, at least 1 unless the median is 0.
    pub(super) fn tokens(self, random: &mut Random) -> u32 {
        let value = self.sample(random);
        if self.median == 0.0 { 0 } else { (value + 0.5).max(1.0) as u32 }
    }

    /// A time in microseconds (the median being in seconds).
    pub(super) fn microseconds(self, random: &mut Random) -> i64 {
        (self.sample(random) * 1e6) as i64
    }
}

/// Ranks 0.. drawn with probability proportional to `1 / (rank + 1)^exponent` (Zipf's law).
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(super) fn new(ranks: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weight = |rank: usize| exp(-exponent * ln(rank as f64 + 1.0));
        let cumulative = (0..ranks)
            .map(|rank| {
                sum += weight(rank);
                sum
            })
            .collect();
        Self { cumulative }
    }

    /// A rank.
    pub(super) fn sample(&self, random: &mut Random) -> usize {
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        let at = random.unit() * total;
        self.cumulative.partition_point(|&c| c <= at).min(self.cumulative.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // First outputs from the state 1, 2, 3, 4, as the reference implementation gives them.
        let mut random = Random { state: [1, 2, 3, 4] };
        let got: Vec<u64> = (0..4).map(|_| random.bits()).collect();
        assert_eq!(got, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn the_finaliser_is_that_of_splitmix64() {
        // First outputs of splitmix64 seeded with 1234567.
        let got: Vec<u64> =
            (1..=3_u64).map(|i| finalize(1_234_567_u64.wrapping_add(i.wrapping_mul(GOLDEN)))).collect();
        assert_eq!(got, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn samplers_have_the_moments_they_should() {
        let mut random = Random::new(1, 0);
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || random.exponential()) - 1.0).abs() < 0.01);
        assert!((mean(&mut || random.exponential().powi(2)) - 2.0).abs() < 0.05);
        assert!(mean(&mut || random.normal()).abs() < 0.01);
        assert!((mean(&mut || random.normal().powi(2)) - 1.0).abs() < 0.01);
        let zipf = Zipf::new(3, 1.0);
        let mut counts = [0_u32; 3];
        (0..110_000).for_each(|_| counts[zipf.sample(&mut random)] += 1);
        for (rank, want) in [60_000, 30_000, 20_000].into_iter().enumerate() {
            assert!(counts[rank].abs_diff(want) < 800, "rank {rank}: {}", counts[rank]);
        }
    }

    #[test]
    fn lengths_are_bounded_and_never_zero_unless_asked_for() {
        let mut random = Random::new(7, 0);
        for _ in 0..10_000 {
            assert!((1..=200).contains(&LogNormal::new(10.0, 2.0).tokens(&mut random)));
            assert_eq!(LogNormal::new(0.0, 2.0).tokens(&mut random), 0);
        }
    }
}
