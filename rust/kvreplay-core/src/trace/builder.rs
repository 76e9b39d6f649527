//! Prefix-aware interning: from paths of ids to the forest.
//!
//! A path is walked chain by chain: the first block of a chain (a *head*) is looked up by (parent block, id), the
//! rest of it is a comparison with the ids the path goes on with. Keying by the parent makes the forest right for
//! traces that are not chained as well: an id under two parents becomes two blocks, (re-keyed parent, id), as
//! `semantics.md` section 1 asks. `find_rekeyed` counts them afterwards.
//!
//! Ids of public traces mostly count up, and then chains and paths are compared run by run, whatever their length.

use super::forest::{Forest, NO_CHAIN, Node};
use super::id_store::{Cursor, IdRun, IdStore};
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

/// What a walk needs of a chain, in one place: paths meet chains in no order that a cache could foresee.
/// Half a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Link {
    first_id: u64,
    start: u32,
    len: u32,
    /// How many blocks of the chain above belong to the path; 0 for a root.
    parent_len: u32,
    /// The first chain hung below this one; [`MANY`] where there are others, [`NO_CHAIN`] where there is none. Most
    /// chains have one, which then is not in the hash table.
    child: u32,
    /// How many blocks from the first on have ids that count up, and the run that holds them; while ids are runs.
    lead: u32,
    run: u32,
}

/// A chain has several children: they are in the hash table, the first one too.
const MANY: u32 = NO_CHAIN - 1;

/// Builds a [`Forest`] request by request.
#[derive(Debug, Default)]
pub struct ForestBuilder {
    ids: IdStore,
    text: Bits,
    texts: Texts,
    forest: Forest,
    links: Vec<Link>,
    heads: HashTable<Head>,
    last_root: u32,
    namespaces: u32,
    /// Room for a path in the other form.
    runs: Vec<IdRun>,
    flat: Vec<u64>,
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
        self.ids.blocks()
    }

    /// The number of a text id, for [`Kinds::Mixed`].
    pub fn text_number(&mut self, text: &str) -> u64 {
        u64::from(self.texts.number(text))
    }

    /// The node of the first `len` blocks of a node's path.
    #[must_use]
    pub fn truncate(&self, node: Node, len: u32) -> Node {
        self.forest.truncate(node, len)
    }

    /// Adds a path (root first) in a namespace and returns its node.
    ///
    /// # Errors
    /// `too_many_blocks` when the trace has more than 4.27e9 distinct blocks or 1.6e7 namespaces.
    pub fn push(&mut self, namespace: u32, ids: &[u64], kinds: Kinds<'_>) -> Result<Node> {
        self.push_below(Node::EMPTY, namespace, ids, kinds)
    }

    /// Adds a path of numbers given as runs.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_runs(&mut self, namespace: u32, runs: &[IdRun]) -> Result<Node> {
        if self.ids.runs().is_some() {
            return self.by_runs(Node::EMPTY, namespace, runs);
        }
        let mut flat = std::mem::take(&mut self.flat);
        flat.clear();
        flat.extend(runs.iter().flat_map(|run| run.ids()));
        let node = self.push_below(Node::EMPTY, namespace, &flat, Kinds::Numbers);
        self.flat = flat;
        node
    }

    /// Adds the blocks `ids` below a node of the same namespace and returns the node of the longer path.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_below(&mut self, above: Node, namespace: u32, ids: &[u64], kinds: Kinds<'_>) -> Result<Node> {
        let kinds = match kinds {
            Kinds::Numbers if self.texts.is_empty() => None,
            Kinds::Numbers => Some(&[][..]),
            Kinds::Mixed(kinds) => Some(kinds),
        };
        if kinds.is_none() && self.ids.runs().is_some() {
            let mut runs = std::mem::take(&mut self.runs);
            runs.clear();
            for &id in ids {
                IdRun::append(&mut runs, id);
            }
            let node = self.by_runs(above, namespace, &runs);
            self.runs = runs;
            return node;
        }
        self.one_by_one(above, namespace, ids, kinds)
    }

    /// Adds numbers while all ids so far are kept as runs.
    fn by_runs(&mut self, above: Node, namespace: u32, runs: &[IdRun]) -> Result<Node> {
        let mut rest = Cursor::new(runs);
        if rest.peek().is_none() {
            return Ok(above);
        }
        self.open_namespace(namespace)?;
        // The node may end inside its chain, and the path may go on along the rest of it.
        let mut at = self.along(above, &mut rest);
        while let Some(run) = rest.peek() {
            let parent = self.parent_code(at, namespace);
            let Some(chain) = self.child(at, parent, run.first, false) else {
                let count = rest.rest().map(|run| u64::from(run.count)).sum();
                let lead = run.count;
                let node = self.hang(at, parent, namespace, (run.first, count))?;
                self.links[node.chain as usize].lead = lead;
                self.ids.extend(rest.rest());
                self.locate(node.chain);
                return Ok(node);
            };
            if at.is_empty() {
                self.last_root = chain;
            }
            at = self.along(Node { chain, len: 0 }, &mut rest);
        }
        Ok(at)
    }

    /// Notes the run in which a new chain begins.
    fn locate(&mut self, chain: u32) {
        let Some(runs) = self.ids.runs() else { return };
        let link = &mut self.links[chain as usize];
        // The chain is the last one, so its run is near the end.
        let mut run = runs.block.len() - 1;
        while runs.block[run] > link.start {
            run -= 1;
        }
        link.run = run as u32;
    }

    /// Goes on along the chain of a node as far as the ids do.
    fn along(&self, node: Node, rest: &mut Cursor<'_>) -> Node {
        if node.is_empty() {
            return node;
        }
        let link = &self.links[node.chain as usize];
        let mut len = node.len;
        let mut run = link.run as usize;
        while let Some(more) = rest.peek()
            && len < link.len
        {
            let (id, count) = if len < link.lead {
                (link.first_id + u64::from(len), link.lead - len)
            } else {
                let Some(runs) = self.ids.runs() else { break };
                let block = link.start + len;
                while runs.block.get(run + 1).is_some_and(|&next| next <= block) {
                    run += 1;
                }
                let end = runs.block.get(run + 1).map_or(u32::MAX, |&next| next).min(link.start + link.len);
                (runs.id[run] + u64::from(block - runs.block[run]), end - block)
            };
            if id != more.first {
                break;
            }
            let same = count.min(more.count);
            rest.take(same);
            len += same;
        }
        Node { chain: node.chain, len }
    }

    /// Adds ids one by one: numbers that do not count up, or texts.
    fn one_by_one(
        &mut self,
        above: Node,
        namespace: u32,
        ids: &[u64],
        kinds: Option<&[bool]>,
    ) -> Result<Node> {
        if ids.is_empty() {
            return Ok(above);
        }
        self.ids.flatten();
        self.open_namespace(namespace)?;
        let rest_of = |done: usize| kinds.map(|kinds| kinds.get(done..).unwrap_or(&[]));
        let mut done = self.same(above, ids, kinds);
        let mut at = Node { chain: above.chain, len: above.len + done as u32 };
        while done < ids.len() {
            let parent = self.parent_code(at, namespace);
            let is_text = kinds.is_some_and(|kinds| kinds.get(done).copied().unwrap_or(false));
            let Some(chain) = self.child(at, parent, ids[done], is_text) else {
                let node = self.hang(at, parent, namespace, (ids[done], (ids.len() - done) as u64))?;
                let first = self.links[node.chain as usize].start;
                self.ids.flatten().extend_from_slice(&ids[done..]);
                for (block, _) in (first..).zip(rest_of(done).unwrap_or(&[])).filter(|(_, is_text)| **is_text)
                {
                    self.text.set(block);
                }
                return Ok(node);
            };
            if at.is_empty() {
                self.last_root = chain;
            }
            let same = self.same(Node { chain, len: 0 }, &ids[done..], rest_of(done));
            at = Node { chain, len: same as u32 };
            done += same;
        }
        Ok(at)
    }

    /// How many of `ids` the blocks of a node's chain behind it have.
    fn same(&mut self, node: Node, ids: &[u64], kinds: Option<&[bool]>) -> usize {
        if node.is_empty() {
            return 0;
        }
        let link = &self.links[node.chain as usize];
        let (begin, end) = ((link.start + node.len) as usize, (link.start + link.len) as usize);
        let same = common_prefix(ids, &self.ids.flatten()[begin..end]);
        let Some(kinds) = kinds else { return same };
        let differs =
            |i: &usize| self.text.get((begin + i) as u32) != kinds.get(*i).copied().unwrap_or(false);
        (0..same).find(differs).unwrap_or(same)
    }

    /// What stands for the block above in the hash table.
    fn parent_code(&self, at: Node, namespace: u32) -> u32 {
        if at.is_empty() { u32::MAX - namespace } else { self.links[at.chain as usize].start + at.len - 1 }
    }

    /// The chain that starts below `at` with `id`.
    fn child(&self, at: Node, parent: u32, id: u64, is_text: bool) -> Option<u32> {
        let guess = if at.is_empty() { self.last_root } else { self.links[at.chain as usize].child };
        if guess == NO_CHAIN {
            return None;
        }
        if guess != MANY {
            let link = &self.links[guess as usize];
            let root_fits = !at.is_empty() || self.forest.namespace(guess) == u32::MAX - parent;
            let fits = link.parent_len == at.len && link.first_id == id && root_fits;
            if fits && self.text.get(link.start) == is_text {
                return Some(guess);
            }
            if !at.is_empty() {
                return None;
            }
        }
        let found = self.heads.find(Head::hash(parent, id), |head| {
            head.id == id
                && head.parent == parent
                && (self.texts.is_empty() || self.text.get(self.links[head.chain as usize].start) == is_text)
        });
        found.map(|head| head.chain)
    }

    /// Hangs a new chain below `at`: its first id and number of blocks. The caller adds the ids.
    fn hang(&mut self, at: Node, parent: u32, namespace: u32, (id, count): (u64, u64)) -> Result<Node> {
        let first = self.ids.blocks();
        if count > (MAX_BLOCKS - first) as u64 {
            return Err(too_many("distinct blocks", MAX_BLOCKS as u64));
        }
        let (chain, start, len) = (self.links.len() as u32, first as u32, count as u32);
        let depth = self.forest.path_len(at);
        let head = Head { id, parent, chain };
        if at.is_empty() {
            self.last_root = chain;
            self.enter(head);
        } else {
            // Only with a second child the hash table is needed: one is found from its parent.
            let child = &mut self.links[at.chain as usize].child;
            match *child {
                NO_CHAIN => *child = chain,
                MANY => self.enter(head),
                first => {
                    *child = MANY;
                    self.enter(self.head(first));
                    self.enter(head);
                }
            }
        }
        self.links.push(Link {
            first_id: id,
            start,
            len,
            parent_len: at.len,
            child: NO_CHAIN,
            lead: 0,
            run: 0,
        });
        self.forest.depth.push(depth);
        self.forest.parent.push(at);
        self.forest.start.push(start + len);
        if self.namespaces > 1 {
            self.forest.namespace.push(namespace);
        }
        Ok(Node { chain, len })
    }

    /// The entry of a chain that has a parent.
    fn head(&self, chain: u32) -> Head {
        let link = &self.links[chain as usize];
        let above = self.forest.parent(chain);
        let parent = self.links[above.chain as usize].start + link.parent_len - 1;
        Head { id: link.first_id, parent, chain }
    }

    fn enter(&mut self, head: Head) {
        let hash = Head::hash(head.parent, head.id);
        self.heads.insert_unique(hash, head, |head| Head::hash(head.parent, head.id));
    }

    /// The namespace per chain is kept only once there are two.
    fn open_namespace(&mut self, namespace: u32) -> Result<()> {
        if namespace < self.namespaces {
            return Ok(());
        }
        if namespace > MAX_NAMESPACES {
            return Err(too_many("namespaces", u64::from(MAX_NAMESPACES)));
        }
        if self.namespaces <= 1 && namespace > 0 {
            // Everything so far lies in namespace 0, the only one there was.
            self.forest.namespace.resize(self.forest.parent.len(), 0);
        }
        self.namespaces = namespace + 1;
        Ok(())
    }

    /// The finished forest and the ids of its blocks.
    #[must_use]
    pub fn finish(self) -> (Forest, IdTable) {
        let Self { ids, text, texts, mut forest, heads, links, .. } = self;
        drop((heads, links));
        forest.start.shrink_to_fit();
        forest.parent.shrink_to_fit();
        forest.depth.shrink_to_fit();
        (forest, ids.finish(text, texts))
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
