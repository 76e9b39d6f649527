//! Which hierarchies of LRU tiers are slices of one LRU stack, so that one pass gives their exact hits.
//!
//! All tiers are LRU, admit always, have chunks of one block, and lie in the order tier 1, 2, ... of
//! `semantics.md` section 5. Say the tiers down to `k` *cover* the top `S_k` of the stack when, after every
//! request, the union of their contents is that top. A look-up cascades, so it then finds the leading run of
//! an LRU of `S_k` blocks, of which the tiers above serve what an LRU of `S_(k-1)` finds.
//!
//! **Tier 1** of `C1` blocks covers the top `C1`: section 3 of `semantics.md`. A request longer than
//! `C1` puts its head there and leaves the rest, which is what the top of the stack is.
//!
//! **A victim tier** of `C` blocks below a cover of `S` makes a cover of `S + C`, if every request fits tier 1.
//! Such a request takes all its resident blocks out of the victim tier before anything moves. The tier
//! above then evicts in stack order, the oldest of its slice first: all blocks of the request are younger, and
//! none of them is in the victim tier. So the victim tier receives the blocks that fall below depth `S`, in
//! the order in which they fall, and holds them in that order above those that fell before: the next `C`
//! of the stack. (A request that does not fit may see its own blocks handed down and stay there, see
//! `golden/textbook`; then this is not exact.) The same holds below a write-through tier, which is
//! then the tier of that slice, and receives what the victim tier serves. (A tier of no blocks drops what it is
//! handed, so nothing reaches a victim tier below it.)
//!
//! **A write-through tier** with `touch = path` of `C >= S` blocks below a cover of `S` makes a cover of `C` by
//! itself. By induction it holds the top `C` before the request, hence everything the tiers above hold. So
//! whatever of the path's first `C` blocks it lacks is in no tier above either: those blocks are served from
//! below or computed, hence offered to it, and the others are touched, tail to head, in one pass. That is one LRU
//! of `C` blocks. It does not matter how the tiers above came by their blocks.
//!
//! Anything else (a smaller write-through tier, `touch = served`, write-back) holds a filtered history and is left
//! to the block engine. `closure = "leaf"` changes nothing in a slice: of a slice's blocks the oldest has no
//! child in it, children being older than their parents.

/// Fill rule of a tier below the first (`semantics.md` section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Receives what is computed or served from below; `touch = "path"`.
    WriteThrough,
    /// The same with `touch = "served"`.
    WriteThroughServed,
    /// Receives what the tier above evicts, keeps what it serves.
    WriteBack,
    /// Receives what the tier above evicts, gives up what it serves.
    Victim,
}

/// An LRU tier that admits always, in chunks of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceTier {
    /// Capacity in blocks.
    pub capacity_blocks: u64,
    /// Fill rule; without meaning for the first tier.
    pub fill: Fill,
}

/// The cumulative capacities at which the tiers together are one LRU, if they are exactly that on a
/// trace whose longest request lists `longest_path` blocks.
#[must_use]
pub fn exact_slices(tiers: &[SliceTier], longest_path: u32) -> Option<Vec<u64>> {
    let first = tiers.first()?;
    let mut cover = first.capacity_blocks;
    let mut covers = vec![cover];
    for (above, tier) in tiers.iter().zip(&tiers[1..]) {
        cover = match tier.fill {
            Fill::Victim if u64::from(longest_path) <= first.capacity_blocks && above.capacity_blocks > 0 => {
                cover.checked_add(tier.capacity_blocks)?
            }
            Fill::WriteThrough if tier.capacity_blocks >= cover => tier.capacity_blocks,
            _ => return None,
        };
        covers.push(cover);
    }
    Some(covers)
}
