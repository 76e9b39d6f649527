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

/// How many numbers behind the one at `at` (of `digits` digits, a comma and perhaps a blank behind it) count up by
/// one in the same number of digits, each with the same glue behind it, and the place behind them all.
///
/// Nothing is converted: the next number is written down from the one before it and compared. None are found where
/// numbers have more than 8 digits, and those too close to the end of the slice are left to [`unsigned`].
#[inline(never)]
pub(crate) fn counting(bytes: &[u8], end: usize, at: usize, (digits, blank): (usize, usize)) -> (u32, usize) {
    let stride = digits + 1 + blank;
    let begin = at + stride;
    let (Some(spare), Some(before)) = (8_usize.checked_sub(digits), load(bytes, at)) else {
        return (0, begin);
    };
    let shift = 8 * spare as u32;
    let top = 8 * (digits as u32 - 1);
    let (mask, glue) = if blank == 1 { (0xffff, 0x202c) } else { (0xff, 0x2c) };
    // The last digit in the lowest byte: the next number is one more, and `:` follows `9`.
    let mut want = before.swap_bytes() >> shift;
    let mut at = begin;
    while at + stride <= end {
        want += 1;
        if want & 0xff == u64::from(b':') {
            let mut place = 0;
            while place < top && want >> place & 0xff == u64::from(b':') {
                want += (1 << (place + 8)) - (10 << place);
                place += 8;
            }
            if want >> top & 0xff == u64::from(b':') {
                break; // one digit more
            }
        }
        let (Some(word), Some(behind)) = (load(bytes, at), load(bytes, at + digits)) else { break };
        if (word.swap_bytes() >> shift) ^ want | (behind & mask) ^ glue != 0 {
            break;
        }
        at += stride;
    }
    (((at - begin) / stride) as u32, at)
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

    /// How many numbers behind the first the fast reading takes, and where it stops.
    fn counted(text: &str, glue: &str) -> (u32, usize) {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        counting(&padded(text), text.len(), 0, (digits, glue.len() - 1))
    }

    #[test]
    fn numbers_that_count_up() {
        for glue in [",", ", "] {
            let list = |ids: &[u64]| {
                let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
                ids.join(glue) + glue
            };
            let text = list(&[97, 98, 99, 100]);
            assert_eq!(counted(&text, glue), (2, list(&[97, 98, 99]).len()));
            assert_eq!(counted(&list(&[1999, 2000, 2001, 2003]), glue).0, 2);
            assert_eq!(counted(&list(&[7, 8, 9, 10]), glue).0, 2);
            assert_eq!(counted(&list(&[0, 1, 1]), glue).0, 1);
            assert_eq!(counted(&list(&[99_999_998, 99_999_999, 100_000_000]), glue).0, 1);
            assert_eq!(counted(&list(&[123_456_789, 123_456_790]), glue).0, 0);
            assert_eq!(counted("5,7,", ","), (0, 2));
            // Another glue, a sign, a point, the last one: the slow reading decides.
            for rest in ["6 ,", "+6,", "6.0,", "06,", "6]", "6"] {
                assert_eq!(counted(&format!("5{glue}{rest}"), glue), (0, 1 + glue.len()), "{rest}");
            }
        }
        assert_eq!(counted("5,6, 7,", ","), (1, 4));
        assert_eq!(counted("5, 6,7,", ", "), (0, 3));
        // What stands behind the end of the text is not read.
        assert_eq!(counting(&padded("5,6,7,"), 4, 0, (1, 0)), (1, 4));
        assert_eq!(counting(&padded("5,6,7,"), 5, 0, (1, 0)), (1, 4));
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
