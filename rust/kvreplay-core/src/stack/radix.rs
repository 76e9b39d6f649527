//! Sorting millions of 32-bit numbers in linear time.

const BITS: u32 = 11;
const DIGITS: usize = 1 << BITS;

/// Below this many numbers a comparison sort is faster than clearing the counters.
const SMALL: usize = 2048;

/// Sorts by least significant digits; a digit all numbers share costs no move. `scratch` is grown to the
/// length of `numbers` and may be used again.
pub(super) fn sort(numbers: &mut Vec<u32>, scratch: &mut Vec<u32>) {
    if numbers.len() < SMALL {
        numbers.sort_unstable();
        return;
    }
    scratch.resize(numbers.len(), 0);
    for shift in [0, BITS, 2 * BITS] {
        let mut place = [0_usize; DIGITS];
        for &n in numbers.iter() {
            place[digit(n, shift)] += 1;
        }
        if place[digit(numbers[0], shift)] == numbers.len() {
            continue;
        }
        let mut next = 0;
        for slot in &mut place {
            let count = *slot;
            *slot = next;
            next += count;
        }
        for &n in numbers.iter() {
            let slot = &mut place[digit(n, shift)];
            scratch[*slot] = n;
            *slot += 1;
        }
        std::mem::swap(numbers, scratch);
    }
}

fn digit(n: u32, shift: u32) -> usize {
    (n >> shift) as usize & (DIGITS - 1)
}

#[cfg(test)]
mod tests {
    use super::sort;
    use crate::stack::tests::forests::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(60))]
        #[test]
        fn equals_the_standard_sort(mut numbers in prop::collection::vec(any::<u32>(), 0..6000), narrow in 0..32_u32) {
            for n in &mut numbers {
                *n >>= narrow;
            }
            let mut want = numbers.clone();
            want.sort_unstable();
            sort(&mut numbers, &mut Vec::new());
            prop_assert_eq!(numbers, want);
        }
    }
}
