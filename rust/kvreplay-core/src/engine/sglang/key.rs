//! The pages of a tree node: runs of consecutive block numbers, then pages without a name.

use crate::trace::Run;

/// The pages of one node, root side first. Kept as runs, so that a page of one token costs no more than a
/// page of 512: what is done per node does not depend on its length.
#[derive(Debug, Clone, Default)]
pub(super) struct Key {
    runs: Vec<Run>,
    named: u32,
    /// Pages at the end that have no name; nobody finds them.
    unnamed: u32,
}

impl Key {
    /// Number of pages.
    pub(super) fn len(&self) -> u64 {
        u64::from(self.named) + u64::from(self.unnamed)
    }

    /// Number of pages with a name.
    pub(super) fn named(&self) -> u32 {
        self.named
    }

    /// Number of pages without a name.
    pub(super) fn unnamed(&self) -> u32 {
        self.unnamed
    }

    /// The first block, if it has a name.
    pub(super) fn first(&self) -> Option<u32> {
        self.runs.first().map(|run| run.start)
    }

    /// The named blocks, root side first.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.iter().flat_map(|run| run.start..run.start + run.len)
    }

    /// Makes this the key of `path` followed by `unnamed` pages; memory is kept.
    pub(super) fn set(&mut self, path: &[u32], unnamed: u32) {
        self.runs.clear();
        self.named = path.len() as u32;
        self.unnamed = unnamed;
        for &block in path {
            match self.runs.last_mut() {
                Some(run) if run.start + run.len == block => run.len += 1,
                _ => self.runs.push(Run { start: block, len: 1 }),
            }
        }
    }

    /// Number of leading pages that `path` shares with this key.
    ///
    /// A block fixes everything before it, so two paths that meet in a page agree on all pages above: one
    /// comparison at the end of a run tells about the whole run.
    pub(super) fn common(&self, path: &[u32]) -> u32 {
        let mut at = 0;
        for run in &self.runs {
            let rest = &path[at as usize..];
            let len = run.len.min(rest.len() as u32);
            if len == 0 {
                break;
            }
            if rest[len as usize - 1] == run.start + len - 1 {
                at += len;
                if len < run.len {
                    break;
                }
                continue;
            }
            let same = |i: u32| rest[i as usize] == run.start + i;
            let (mut low, mut high) = (0, len - 1);
            while low < high {
                let middle = u32::midpoint(low, high);
                if same(middle) { low = middle + 1 } else { high = middle }
            }
            return at + low;
        }
        at
    }

    /// Moves the first `len` pages, all of them named, into `head`; memory of both is kept.
    pub(super) fn split_head(&mut self, len: u32, head: &mut Self) {
        debug_assert!(0 < len && len <= self.named);
        head.runs.clear();
        (head.named, head.unnamed) = (len, 0);
        self.named -= len;
        let mut rest = len;
        let mut whole = 0;
        for run in &mut self.runs {
            if rest == 0 {
                break;
            }
            if run.len <= rest {
                rest -= run.len;
                head.runs.push(*run);
                whole += 1;
            } else {
                head.runs.push(Run { start: run.start, len: rest });
                (run.start, run.len) = (run.start + rest, run.len - rest);
                rest = 0;
            }
        }
        self.runs.drain(..whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &[u32], unnamed: u32) -> Key {
        let mut key = Key::default();
        key.set(path, unnamed);
        key
    }

    #[test]
    fn neighbours_are_one_run() {
        let key = key(&[3, 4, 5, 9, 10, 12], 2);
        let runs: Vec<(u32, u32)> = key.runs.iter().map(|run| (run.start, run.len)).collect();
        assert_eq!(runs, [(3, 3), (9, 2), (12, 1)]);
        assert_eq!((key.len(), key.named(), key.unnamed(), key.first()), (8, 6, 2, Some(3)));
        assert_eq!(key.blocks().collect::<Vec<_>>(), [3, 4, 5, 9, 10, 12]);
    }

    #[test]
    fn common_pages_end_at_the_first_difference() {
        let key = key(&[3, 4, 5, 9, 10, 12], 0);
        for (path, common) in [
            (&[3, 4, 5, 9, 10, 12, 13][..], 6),
            (&[3, 4, 5, 9, 10, 12], 6),
            (&[3, 4, 5, 9, 10, 14], 5),
            (&[3, 4, 5, 9], 4),
            (&[3, 4, 5], 3),
            (&[3, 4], 2),
            (&[3, 4, 20, 21], 2),
            (&[3, 20], 1),
            (&[3, 4, 5, 20, 21, 22], 3),
            (&[20], 0),
            (&[], 0),
        ] {
            assert_eq!(key.common(path), common, "{path:?}");
        }
        assert_eq!(self::key(&[3], 4).common(&[3, 4, 5]), 1, "pages without a name are never found");
    }

    #[test]
    fn a_head_is_split_off_at_any_page() {
        let path = [3, 4, 5, 9, 10, 12];
        for len in 1..=6 {
            let (mut tail, mut head) = (key(&path, 2), key(&[1, 2], 7));
            tail.split_head(len, &mut head);
            let at = len as usize;
            assert_eq!(head.blocks().collect::<Vec<_>>(), path[..at], "{len}");
            assert_eq!(tail.blocks().collect::<Vec<_>>(), path[at..], "{len}");
            assert_eq!((head.len(), tail.len()), (u64::from(len), 8 - u64::from(len)));
            assert_eq!((head.unnamed(), tail.unnamed()), (0, 2));
        }
    }
}
