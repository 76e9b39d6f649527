//! `exp` and `ln` from additions, multiplications and divisions alone.
//!
//! IEEE 754 fixes the result of + - * / and sqrt to the last bit, but not of `exp` and `ln`: two math
//! libraries may differ in the last digit, and one such digit can move a length by a token. These two are
//! good to about 1e-15 relative, which is far more than the samplers need, and equal everywhere.

/// ln 2 in two parts; the first has zeros in its low bits, so `k * LN2_HIGH` is exact for small `k`.
const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);

/// `e^x`, for `|x| <= 700`.
pub(super) fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() <= 700.0);
    let mut k = (x / (LN2_HIGH + LN2_LOW)) as i64;
    let mut r = x - k as f64 * LN2_HIGH - k as f64 * LN2_LOW;
    if r < 0.0 {
        k -= 1;
        r += LN2_HIGH + LN2_LOW;
    }
    // Taylor series at r in [0, ln 2), by Horner's rule: the 18th term is below 2^-60.
    let mut sum = 1.0;
    for n in (1..=18).rev() {
        sum = 1.0 + sum * r / f64::from(n);
    }
    sum * f64::from_bits(((1023 + k) as u64) << 52)
}

/// Natural logarithm of a positive, normal number.
pub(super) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); the argument is at most 0.1716, whose 23rd power is below 2^-58.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut sum = 0.0;
    for n in (0..=11).rev() {
        sum = sum * square + 1.0 / f64::from(2 * n + 1);
    }
    2.0 * t * sum + exponent as f64 * LN2_LOW + exponent as f64 * LN2_HIGH
}

#[cfg(test)]
mod tests {
    use super::{exp, ln};

    #[test]
    fn both_agree_with_the_library() {
        for i in -6000..=6000 {
            let x = f64::from(i) / 10.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-13, "exp {x}");
            let y = x.exp();
            assert!((ln(y) - y.ln()).abs() < 1e-15 * (1.0 + y.ln().abs()) * 4.0, "ln {y}");
        }
        for n in 1..2000 {
            assert!((ln(f64::from(n)) - f64::from(n).ln()).abs() < 4e-15, "ln {n}");
        }
        assert_eq!((exp(0.0).to_bits(), ln(1.0).to_bits()), (1.0_f64.to_bits(), 0.0_f64.to_bits()));
    }
}
