//! Decimal digits eight at a time.

/// The eight bytes at `at`, the first in the lowest place; `None` near the end of the slice.
#[inline]
pub(crate) fn load(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// How many of the eight bytes are digits before the first that is not.
#[inline]
fn count(word: u64) -> u32 {
    let zeroed = word ^ 0x3030_3030_3030_3030;
    // A digit is now 0..=9: adding 0x76 sets the top bit of anything larger, and of nothing else's neighbour
    // (0x76 + 0xff carries, hence the top bits are looked at apart).
    let large = ((zeroed & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | zeroed;
    (large & 0x8080_8080_8080_8080).trailing_zeros() / 8
}

/// The value of the first `digits` (1 to 8) bytes.
#[inline]
fn value(word: u64, digits: u32) -> u64 {
    // Shifted up, the missing leading places read as zero digits; then pairs, fours and eights are joined.
    let word = (word ^ 0x3030_3030_3030_3030) << (64 - 8 * digits);
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

const TEN: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The unsigned integer at `at` and the place behind it.
///
/// `None` when there is no digit, when it starts with a needless zero, when it does not fit 64 bits, or too
/// close to the end of the slice to be loaded: the slow path then decides.
#[inline]
pub(crate) fn unsigned(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = load(bytes, at)?;
    let digits = count(word);
    if digits == 0 || (word & 0xff == u64::from(b'0') && digits > 1) {
        return None;
    }
    let head = value(word, digits);
    if digits < 8 {
        return Some((head, at + digits as usize));
    }
    long(bytes, at + 8, head)
}

/// Goes on behind the first eight digits.
fn long(bytes: &[u8], mut at: usize, mut head: u64) -> Option<(u64, usize)> {
    loop {
        let word = load(bytes, at)?;
        let digits = count(word);
        if digits == 0 {
            return Some((head, at));
        }
        head = head.checked_mul(TEN[digits as usize])?.checked_add(value(word, digits))?;
        at += digits as usize;
        if digits < 8 {
            return Some((head, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn padded(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(b"\n\n\n\n\n\n\n\n");
        bytes
    }

    #[test]
    fn every_length_up_to_twenty_digits() {
        let mut text = String::new();
        for i in 0..20 {
            text.push(char::from(b'1' + (i % 9) as u8));
            if text.parse::<u64>().is_ok() {
                let want = (text.parse().unwrap(), text.len());
                assert_eq!(unsigned(&padded(&text), 0), Some(want), "{text}");
            }
        }
        assert_eq!(unsigned(&padded("18446744073709551615"), 0), Some((u64::MAX, 20)));
        assert_eq!(unsigned(&padded("18446744073709551616"), 0), None);
        assert_eq!(unsigned(&padded("100000000000000000000000"), 0), None);
    }

    #[test]
    fn what_is_left_to_the_slow_path() {
        for text in ["", "-1", "01", "00", "x", "\u{fffd}"] {
            assert_eq!(unsigned(&padded(text), 0), None, "{text:?}");
        }
        assert_eq!(unsigned(&padded("0"), 0), Some((0, 1)));
        assert_eq!(unsigned(b"12", 0), None);
        assert_eq!(unsigned(b"12", usize::MAX), None);
    }

    proptest! {
        #[test]
        fn equals_the_standard_parser(value: u64, shift in 0..64_u32, tail in "[,.eE \\]x]") {
            let value = value >> shift;
            let text = value.to_string();
            prop_assert_eq!(unsigned(&padded(&format!("{text}{tail}")), 0), Some((value, text.len())));
        }

        #[test]
        fn any_bytes(word: u64) {
            let bytes = word.to_le_bytes();
            let want = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
            prop_assert_eq!(count(word) as usize, want);
        }
    }
}
