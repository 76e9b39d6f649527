//! The ids as the trace gave them, by dense block number.

use hashbrown::HashTable;

/// An id as given: a 64-bit number or a text (a digest, a UUID).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id<'a> {
    /// A number; negative ids are the same 64 bits read as two's complement.
    Number(u64),
    /// Any other id, as written.
    Text(&'a str),
}

/// Texts seen as ids, each stored once and numbered from 0 in order of appearance.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    bytes: String,
    ends: Vec<usize>,
    table: HashTable<u32>,
}

impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.ends == other.ends
    }
}
impl Eq for Texts {}

impl Texts {
    /// The number of `text`, new or known.
    pub fn number(&mut self, text: &str) -> u32 {
        let hash = hash_bytes(text.as_bytes());
        let Self { bytes, ends, table } = self;
        if let Some(&known) = table.find(hash, |&n| slice(bytes, ends, n) == text) {
            return known;
        }
        let number = ends.len() as u32;
        bytes.push_str(text);
        ends.push(bytes.len());
        table.insert_unique(hash, number, |&n| hash_bytes(slice(bytes, ends, n).as_bytes()));
        number
    }

    /// The text with a number.
    #[must_use]
    pub fn get(&self, number: u32) -> &str {
        slice(&self.bytes, &self.ends, number)
    }

    /// How many different texts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

fn slice<'a>(bytes: &'a str, ends: &[usize], number: u32) -> &'a str {
    let at = number as usize;
    let begin = if at == 0 { 0 } else { ends[at - 1] };
    &bytes[begin..ends[at]]
}

/// FNV-1a with a final mix: fixed, so that runs repeat.
fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ (hash >> 29)
}

/// The id of every block. Numbers that count up along the blocks are kept as runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdTable {
    numbers: Numbers,
    /// Bit per block: the number is a text's number. Empty when there are no texts.
    text: Bits,
    texts: Texts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Numbers {
    Flat(Vec<u64>),
    Runs(IdRuns),
}

/// Ids that count up by one along the blocks, as runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdRuns {
    /// First block of each run, ascending, starting with 0.
    pub block: Vec<u32>,
    /// Id of that block.
    pub id: Vec<u64>,
}

impl IdRuns {
    /// One id per block.
    pub(super) fn to_flat(&self, blocks: u32) -> Vec<u64> {
        let ends = self.block.iter().skip(1).copied().chain([blocks]);
        let runs = self.block.iter().zip(&self.id).zip(ends);
        runs.flat_map(|((&first, &id), end)| (0..u64::from(end - first)).map(move |i| id + i)).collect()
    }
}

/// Whether runs are the smaller form: a run costs 12 bytes, a flat entry 8.
pub(super) fn pays(runs: usize, blocks: usize) -> bool {
    runs * 3 < blocks * 2
}

impl IdTable {
    /// From one number per block; `text` marks the blocks whose number is that of a text.
    #[must_use]
    pub fn new(flat: Vec<u64>, text: Bits, texts: Texts) -> Self {
        // Counted first: a run table of random ids would be larger than the ids themselves.
        let runs = runs_of(&flat).count();
        let numbers = if pays(runs, flat.len()) {
            let (block, id) = runs_of(&flat).unzip();
            Numbers::Runs(IdRuns { block, id })
        } else {
            Numbers::Flat(flat)
        };
        Self { numbers, text, texts }
    }

    /// From runs over `blocks` blocks.
    #[must_use]
    pub fn from_runs(runs: IdRuns, blocks: u32, text: Bits, texts: Texts) -> Self {
        let numbers = if pays(runs.block.len(), blocks as usize) {
            Numbers::Runs(runs)
        } else {
            Numbers::Flat(runs.to_flat(blocks))
        };
        Self { numbers, text, texts }
    }

    /// The id of a block as given in the trace.
    #[must_use]
    pub fn get(&self, block: u32) -> Id<'_> {
        let number = self.number(block);
        if self.text.get(block) { Id::Text(self.texts.get(number as u32)) } else { Id::Number(number) }
    }

    /// The 64-bit number kept for a block (for a text id its text's number).
    #[must_use]
    pub fn number(&self, block: u32) -> u64 {
        match &self.numbers {
            Numbers::Flat(flat) => flat[block as usize],
            Numbers::Runs(runs) => {
                let run = runs.block.partition_point(|&first| first <= block) - 1;
                runs.id[run] + u64::from(block - runs.block[run])
            }
        }
    }

    /// Whether any id is a text.
    #[must_use]
    pub fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Whether the id of a block is a text.
    #[must_use]
    pub fn is_text(&self, block: u32) -> bool {
        self.text.get(block)
    }

    /// The texts used as ids.
    #[must_use]
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// One number per block, where they are stored like that (ids that do not count up).
    #[must_use]
    pub fn flat(&self) -> Option<&[u64]> {
        match &self.numbers {
            Numbers::Flat(flat) => Some(flat),
            Numbers::Runs(_) => None,
        }
    }

    /// The runs of consecutive numbers over the blocks as `(first block, its number)`, whatever the storage.
    #[must_use]
    pub fn run_iter(&self) -> Box<dyn Iterator<Item = (u32, u64)> + '_> {
        match &self.numbers {
            Numbers::Flat(flat) => Box::new(runs_of(flat)),
            Numbers::Runs(runs) => Box::new(runs.block.iter().copied().zip(runs.id.iter().copied())),
        }
    }

    /// The same as a table.
    #[must_use]
    pub fn runs(&self) -> IdRuns {
        let (block, id) = self.run_iter().unzip();
        IdRuns { block, id }
    }
}

/// Where the numbers of a flat table do not count up.
fn runs_of(flat: &[u64]) -> impl Iterator<Item = (u32, u64)> + '_ {
    let before = std::iter::once(None).chain(flat.iter().copied().map(Some));
    let starts = flat.iter().copied().zip(before).enumerate();
    starts
        .filter(|(_, (id, before))| before.and_then(|b| b.checked_add(1)) != Some(*id))
        .map(|(b, (id, _))| (b as u32, id))
}

/// A bit per block, all zero until one is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// The bit of a block.
    #[must_use]
    pub fn get(&self, block: u32) -> bool {
        self.words.get(block as usize / 64).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// Set the bit of a block.
    pub fn set(&mut self, block: u32) {
        let word = block as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (block % 64);
    }
}
