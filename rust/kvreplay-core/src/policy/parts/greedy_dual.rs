//! The order of the Greedy-Dual family: value = inflation + uses * worth, smallest leaves first.

use super::tournament::Ranked;
use super::{Room, Stamps, Tournament};
use std::collections::BTreeMap;

/// Value, last use and uses of a block, from the highest bit on: an exact order in few bytes.
pub trait Slot: Ranked<Key = u128> {
    /// Bits below the value, for last use and uses.
    const BELOW: u32;

    /// A slot of the bits of [`Ranked::key`].
    fn new(bits: u128) -> Self;

    /// The bits of a value; larger values have larger bits.
    fn bits(value: f64) -> u64;

    /// The value of such bits.
    fn value(bits: u64) -> f64;
}

/// Any value from 1 below 2^128: 7 bits of the exponent and the 52 of the fraction hold it exactly.
fn any_bits(value: f64) -> u64 {
    debug_assert!((1.0..2_f64.powi(128)).contains(&value));
    value.to_bits() - 1_f64.to_bits()
}

fn any_value(bits: u64) -> f64 {
    f64::from_bits(bits + 1_f64.to_bits())
}

/// Eleven bytes as a number.
#[inline]
fn eleven(bytes: [u8; 11]) -> u128 {
    let mut wide = [0; 16];
    wide[..11].copy_from_slice(&bytes);
    u128::from_le_bytes(wide)
}

/// The lowest eleven bytes of a number.
#[inline]
fn lowest(bits: u128) -> [u8; 11] {
    let mut bytes = [0; 11];
    bytes.copy_from_slice(&bits.to_le_bytes()[..11]);
    bytes
}

/// Values that are whole numbers below 2^51: worth 1, so none is larger than the number of uses so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Whole([u8; 11]);

impl Ranked for Whole {
    type Key = u128;

    #[inline]
    fn key(&self) -> u128 {
        eleven(self.0)
    }
}

impl Slot for Whole {
    const BELOW: u32 = 88 - 51;

    #[inline]
    fn new(bits: u128) -> Self {
        Self(lowest(bits))
    }

    #[inline]
    fn bits(value: f64) -> u64 {
        debug_assert!(value >= 0.0 && value < 2_f64.powi(51) && value.fract() == 0.0);
        value as u64
    }

    #[inline]
    fn value(bits: u64) -> f64 {
        bits as f64
    }
}

/// Any values, for up to [`Small::MOST_BLOCKS`] blocks: stamps need fewer bits there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Small([u8; 11]);

impl Small {
    /// With 24 bits of stamps, four per block.
    pub const MOST_BLOCKS: usize = 1 << 22;
}

impl Ranked for Small {
    type Key = u128;

    #[inline]
    fn key(&self) -> u128 {
        eleven(self.0)
    }
}

impl Slot for Small {
    const BELOW: u32 = 88 - 59;

    #[inline]
    fn new(bits: u128) -> Self {
        Self(lowest(bits))
    }

    #[inline]
    fn bits(value: f64) -> u64 {
        any_bits(value)
    }

    #[inline]
    fn value(bits: u64) -> f64 {
        any_value(bits)
    }
}

/// Any values, for any number of blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Large([u32; 3]);

impl Ranked for Large {
    type Key = u128;

    #[inline]
    fn key(&self) -> u128 {
        let [a, b, c] = self.0;
        u128::from(u64::from(a) << 32 | u64::from(b)) << 32 | u128::from(c)
    }
}

impl Slot for Large {
    const BELOW: u32 = 96 - 59;

    #[inline]
    fn new(bits: u128) -> Self {
        Self([(bits >> 64) as u32, (bits >> 32) as u32, bits as u32])
    }

    #[inline]
    fn bits(value: f64) -> u64 {
        any_bits(value)
    }

    #[inline]
    fn value(bits: u64) -> f64 {
        any_value(bits)
    }
}

/// Resident blocks by value.
#[derive(Debug, Clone)]
pub struct GreedyDual<S> {
    order: Tournament<S>,
    stamps: Stamps,
    /// Bits of the uses; the stamp lies between them and the value.
    use_bits: u32,
    /// Uses of the few blocks for which those bits are not enough.
    many: BTreeMap<u32, u32>,
    /// Value of the last victim: what was not used since then ages against what is new.
    inflation: f64,
}

impl<S: Slot> GreedyDual<S> {
    /// An empty order for blocks below `blocks`.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        // Sixteen stamps per block, so that renumbering costs little per use, and five bits of uses at least.
        let most_bits = (S::BELOW - 5).min(u32::BITS);
        Self::with_stamps(blocks, (usize::BITS - blocks.leading_zeros() + 4).clamp(8, most_bits))
    }

    /// The same with stamps of 6 to 32 bits, enough for the blocks.
    fn with_stamps(blocks: usize, stamp_bits: u32) -> Self {
        Self {
            order: Tournament::new(blocks),
            stamps: Stamps::new(stamp_bits),
            use_bits: S::BELOW - stamp_bits,
            many: BTreeMap::new(),
            inflation: 0.0,
        }
    }

    /// Bytes of the arrays that grow with the number of blocks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.order.bytes()
    }

    /// The largest number in the bits of the uses: that many or more.
    #[inline]
    fn most(&self) -> u32 {
        (1 << self.use_bits) - 1
    }

    /// What is kept of a block used now for the `uses`-th time.
    #[inline]
    fn dual(&mut self, block: u32, uses: u32, worth: f64) -> S {
        if self.stamps.are_spent() {
            self.renumber();
        }
        let value = self.inflation + f64::from(uses) * worth;
        if uses >= self.most() {
            self.many.insert(block, uses);
        }
        let below = u128::from(self.stamps.take()) << self.use_bits | u128::from(uses.min(self.most()));
        S::new(u128::from(S::bits(value)) << S::BELOW | below)
    }

    #[cold]
    fn renumber(&mut self) {
        let (shift, mask) = (self.use_bits, u128::from(u32::MAX >> (32 - (S::BELOW - self.use_bits))));
        self.stamps.renumber(
            self.order.items_mut(),
            1,
            |item, _| (item.key() >> shift & mask) as u32,
            |item, _, stamp| {
                *item = S::new(item.key() & !(mask << shift) | u128::from(stamp) << shift);
            },
        );
    }

    #[inline]
    fn uses(&self, block: u32) -> u32 {
        let uses = self.order.get(block).key() as u32 & self.most();
        if uses == self.most() { self.many[&block] } else { uses }
    }

    /// A resident block is used.
    #[inline]
    pub fn hit(&mut self, block: u32, worth: f64) {
        let dual = self.dual(block, self.uses(block).saturating_add(1), worth);
        self.order.update(block, dual);
    }

    /// A block comes in, used once.
    #[inline]
    pub fn push(&mut self, block: u32, worth: f64, exposed: bool) {
        let dual = self.dual(block, 1, worth);
        self.order.push(block, dual, exposed);
    }

    /// Evicts the block of least value among those that may leave.
    #[inline]
    pub fn evict(&mut self, room: &Room<'_>) -> Option<u32> {
        let victim = self.order.smallest(room)?;
        self.inflation = S::value((self.order.get(victim).key() >> S::BELOW) as u64);
        self.remove(victim);
        Some(victim)
    }

    /// The block [`GreedyDual::evict`] would take.
    pub fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.order.smallest(room)
    }

    /// Takes a block out without an eviction.
    #[inline]
    pub fn remove(&mut self, block: u32) {
        let most = self.most();
        if self.order.remove(block).key() as u32 & most == most {
            self.many.remove(&block);
        }
    }

    /// See [`Tournament::expose`].
    pub fn expose(&mut self, block: u32, exposed: bool) {
        self.order.expose(block, exposed);
    }

    /// Resident blocks, the most valuable first.
    #[must_use]
    pub fn content(&self) -> Vec<u32> {
        self.order.content()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::parts::{Closure, Topology};
    use crate::replay::testing::full_blocks;

    /// A list of (value, last use, uses, block), searched from end to end.
    #[derive(Default)]
    struct Slow {
        items: Vec<(f64, u64, u32, u32)>,
        inflation: f64,
        clock: u64,
    }

    impl Slow {
        fn put(&mut self, block: u32, uses: u32, worth: f64) {
            self.items.retain(|item| item.3 != block);
            self.clock += 1;
            self.items.push((self.inflation + f64::from(uses) * worth, self.clock, uses, block));
            self.items.sort_by(|a, b| a.partial_cmp(b).unwrap());
        }

        fn evict(&mut self) -> Option<u32> {
            let victim = (!self.items.is_empty()).then(|| self.items.remove(0))?;
            self.inflation = victim.0;
            Some(victim.3)
        }
    }

    /// Few bits for stamps (renumbered all the time) and few for uses (31 are many) change nothing.
    #[test]
    fn bits_do_not_matter() {
        for stamp_bits in [7, 8, 32] {
            equals_the_list::<Large>(stamp_bits, 1.0 / 3.0);
            equals_the_list::<Whole>(stamp_bits, 0.0);
        }
        for stamp_bits in [7, 8, 24] {
            equals_the_list::<Small>(stamp_bits, 1.0 / 3.0);
        }
    }

    fn equals_the_list<S: Slot>(stamp_bits: u32, step: f64) {
        let trace = full_blocks(&(0..70).map(|id| vec![id]).collect::<Vec<_>>());
        let topology = Topology::new(&trace.forest);
        let room = Room::new(&topology, 70, Closure::None);
        let (mut fast, mut slow) = (GreedyDual::<S>::with_stamps(70, stamp_bits), Slow::default());
        let mut state = 11_u64;
        let mut most_uses = 0;
        for _ in 0..6000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Skewed, so that some blocks are used often.
            let block = ((state >> 33) % 70 * ((state >> 50) % 70) / 70) as u32;
            let worth = 1.0 + f64::from(block % 7) * step;
            match slow.items.iter().find(|item| item.3 == block) {
                Some(&(_, _, uses, _)) if !(state >> 20).is_multiple_of(90) => {
                    fast.hit(block, worth);
                    slow.put(block, uses + 1, worth);
                    most_uses = most_uses.max(uses + 1);
                }
                Some(_) => {
                    fast.remove(block);
                    slow.items.retain(|item| item.3 != block);
                }
                None => {
                    if slow.items.len() >= 40 {
                        assert_eq!(fast.evict(&room), slow.evict());
                        assert_eq!(fast.inflation.to_bits(), slow.inflation.to_bits());
                    }
                    fast.push(block, worth, true);
                    slow.put(block, 1, worth);
                }
            }
            let best: Vec<u32> = slow.items.iter().rev().map(|item| item.3).collect();
            assert_eq!(fast.content(), best);
        }
        assert!(most_uses > 100);
        assert_eq!(fast.many.is_empty(), S::BELOW - stamp_bits > 5);
    }
}
