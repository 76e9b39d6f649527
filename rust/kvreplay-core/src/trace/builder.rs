//! Prefix-aware interning: from paths of ids to the forest.
//!
//! Only the first block of a chain (a *head*) is in the hash table, keyed by (parent block, id); the
//! rest of a path is a streaming comparison with the chain it follows. Keying by the parent makes the
//! forest right for traces that are not chained as well: an id under two parents becomes two blocks,
//! (re-keyed parent, id), as `semantics.md` section 1 asks. `find_rekeyed` counts them afterwards.

use super::forest::{Forest, NO_CHAIN, Node};
use super::ids::{Bits, IdTable, Texts};
use crate::error::{Error, Result};
use hashbrown::HashTable;

/// Block numbers stay below this, so that a parent of a root can be coded as `u32::MAX - namespace`.
const MAX_BLOCKS: usize = 0xFF00_0000;
const MAX_NAMESPACES: u32 = 0x00FF_FFFF;

/// Whether the ids of a path are numbers or numbers of texts.
#[derive(Debug, Clone, Copy)]
pub enum Kinds<'a> {
    /// All ids are numbers.
    Numbers,
    /// `true` per id that is a text's number.
    Mixed(&'a [bool]),
}

#[derive(Debug, Clone, Copy)]
struct Head {
    id: u64,
    parent: u32,
    chain: u32,
}

impl Head {
    fn hash(parent: u32, id: u64) -> u64 {
        let product = u128::from(id ^ 0x9E37_79B9_7F4A_7C15)
            * u128::from((u64::from(parent) << 32 | u64::from(parent)) ^ 0xD6E8_FEB8_6659_FD93 | 1);
        (product as u64) ^ ((product >> 64) as u64)
    }
}

/// Builds a [`Forest`] request by request.
#[derive(Debug, Default)]
pub struct ForestBuilder {
    ids: Vec<u64>,
    text: Bits,
    texts: Texts,
    forest: Forest,
    heads: HashTable<Head>,
    /// The chain last entered below a chain: most paths go on as the path before them did.
    next: Vec<u32>,
    last_root: u32,
    namespaces: u32,
}

impl ForestBuilder {
    /// An empty forest.
    #[must_use]
    pub fn new() -> Self {
        Self { last_root: NO_CHAIN, ..Self::default() }
    }

    /// Number of blocks so far.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.ids.len()
    }

    /// The number of a text id, for [`Kinds::Mixed`].
    pub fn text_number(&mut self, text: &str) -> u64 {
        u64::from(self.texts.number(text))
    }

    /// Adds a path (root first) in a namespace and returns its node.
    ///
    /// # Errors
    /// `too_many_blocks` when the trace has more than 4.27e9 distinct blocks or 1.6e7 namespaces.
    pub fn push(&mut self, namespace: u32, ids: &[u64], kinds: Kinds<'_>) -> Result<Node> {
        self.push_below(Node::EMPTY, namespace, ids, kinds)
    }

    /// Adds the blocks `ids` below a node of the same namespace and returns the node of the longer path.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_below(&mut self, above: Node, namespace: u32, ids: &[u64], kinds: Kinds<'_>) -> Result<Node> {
        if ids.is_empty() {
            return Ok(above);
        }
        if namespace >= self.namespaces {
            if namespace > MAX_NAMESPACES {
                return Err(too_many("namespaces", u64::from(MAX_NAMESPACES)));
            }
            self.grow_namespaces(namespace + 1);
        }
        let kinds = match kinds {
            Kinds::Numbers if self.texts.is_empty() => None,
            Kinds::Numbers => Some(&[][..]),
            Kinds::Mixed(kinds) => Some(kinds),
        };
        // The node may end inside its chain, and the path may go on along the rest of it.
        let mut done = self.same(above.chain, above.len, ids, kinds);
        let mut at = Node { chain: above.chain, len: above.len + done as u32 };
        while done < ids.len() {
            let parent = if at.is_empty() {
                u32::MAX - namespace
            } else {
                self.forest.start[at.chain as usize] + at.len - 1
            };
            let is_text = kinds.is_some_and(|kinds| kinds.get(done).copied().unwrap_or(false));
            let Some(chain) = self.child(at, parent, ids[done], is_text) else {
                return self.hang(
                    at,
                    parent,
                    namespace,
                    &ids[done..],
                    kinds.map(|k| k.get(done..).unwrap_or(&[])),
                );
            };
            if at.is_empty() {
                self.last_root = chain;
            } else {
                self.next[at.chain as usize] = chain;
            }
            let same = self.same(chain, 0, &ids[done..], kinds.map(|k| k.get(done..).unwrap_or(&[])));
            at = Node { chain, len: same as u32 };
            done += same;
        }
        Ok(at)
    }

    /// How many of `ids` the blocks of a chain from its `from`-th on have.
    fn same(&self, chain: u32, from: u32, ids: &[u64], kinds: Option<&[bool]>) -> usize {
        if chain == NO_CHAIN {
            return 0;
        }
        let begin = (self.forest.start[chain as usize] + from) as usize;
        let end = self.forest.start[chain as usize + 1] as usize;
        let same = common_prefix(ids, &self.ids[begin..end]);
        let Some(kinds) = kinds else { return same };
        let differs =
            |i: &usize| self.text.get((begin + i) as u32) != kinds.get(*i).copied().unwrap_or(false);
        (0..same).find(differs).unwrap_or(same)
    }

    /// The node of the first `len` blocks of a node's path.
    #[must_use]
    pub fn truncate(&self, node: Node, len: u32) -> Node {
        self.forest.truncate(node, len)
    }

    /// The chain that starts below `at` with `id`.
    fn child(&self, at: Node, parent: u32, id: u64, is_text: bool) -> Option<u32> {
        let guess = if at.is_empty() { self.last_root } else { self.next[at.chain as usize] };
        if guess != NO_CHAIN && self.forest.parent[guess as usize] == at {
            let first = self.forest.start[guess as usize];
            let root_fits = !at.is_empty() || self.forest.namespace(guess) == u32::MAX - parent;
            if self.ids[first as usize] == id && root_fits && self.text.get(first) == is_text {
                return Some(guess);
            }
        }
        self.heads
            .find(Head::hash(parent, id), |head| {
                head.id == id
                    && head.parent == parent
                    && (self.texts.is_empty()
                        || self.text.get(self.forest.start[head.chain as usize]) == is_text)
            })
            .map(|head| head.chain)
    }

    /// Hangs a new chain below `at`.
    fn hang(
        &mut self,
        at: Node,
        parent: u32,
        namespace: u32,
        ids: &[u64],
        kinds: Option<&[bool]>,
    ) -> Result<Node> {
        let first = self.ids.len();
        if ids.len() > MAX_BLOCKS - first {
            return Err(too_many("distinct blocks", MAX_BLOCKS as u64));
        }
        let chain = self.forest.parent.len() as u32;
        self.ids.extend_from_slice(ids);
        for (i, &is_text) in kinds.unwrap_or(&[]).iter().enumerate() {
            if is_text {
                self.text.set((first + i) as u32);
            }
        }
        self.forest.depth.push(self.forest.path_len(at));
        self.forest.parent.push(at);
        self.forest.start.push((first + ids.len()) as u32);
        if self.namespaces > 1 {
            self.forest.namespace.push(namespace);
        }
        self.next.push(NO_CHAIN);
        if at.is_empty() {
            self.last_root = chain;
        } else {
            self.next[at.chain as usize] = chain;
        }
        self.heads.insert_unique(Head::hash(parent, ids[0]), Head { id: ids[0], parent, chain }, |head| {
            Head::hash(head.parent, head.id)
        });
        Ok(Node { chain, len: ids.len() as u32 })
    }

    /// The namespace per chain is kept only once there are two.
    fn grow_namespaces(&mut self, namespaces: u32) {
        if self.namespaces <= 1 && namespaces > 1 {
            // Everything so far lies in namespace 0, the only one there was.
            self.forest.namespace.resize(self.forest.parent.len(), 0);
        }
        self.namespaces = namespaces;
    }

    /// The finished forest and the ids of its blocks.
    #[must_use]
    pub fn finish(self) -> (Forest, IdTable) {
        let Self { ids, text, texts, mut forest, heads, next, .. } = self;
        drop((heads, next));
        forest.start.shrink_to_fit();
        forest.parent.shrink_to_fit();
        forest.depth.shrink_to_fit();
        (forest, IdTable::new(ids, text, texts))
    }
}

fn too_many(what: &str, limit: u64) -> Error {
    Error::trace(
        "too_many_blocks",
        format!("the trace has more than {limit} {what}"),
        "split the trace by namespace or time and analyse the parts",
    )
}

/// Length of the common prefix of two id lists.
fn common_prefix(a: &[u64], b: &[u64]) -> usize {
    // Eight at a time without a branch per id: the compiler turns the inner loop into vector compares.
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    let mut at = 0;
    while at + 8 <= n {
        let differ = a[at..at + 8].iter().zip(&b[at..at + 8]).fold(0, |acc, (x, y)| acc | (x ^ y));
        if differ != 0 {
            break;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(x, y)| x == y).count()
}
