//! The chunks of the running request, and keys for those that the trace does not name.

use crate::engine::EngineRequest;

/// It was inserted, loaded or offered while present by this request: with request-scoped LRU it has its place
/// among the most recent chunks.
pub(super) const USED: u8 = 1;
/// It was there before and this request read or offered it.
pub(super) const REUSED: u8 = 2;
/// This request put it into the CPU tier.
pub(super) const WRITTEN: u8 = 4;
/// Its ghost has adapted ARC's target already.
pub(super) const ADAPTED: u8 = 8;
/// A secondary tier brought it.
pub(super) const PROMOTED: u8 = 16;

/// Keys of the complete chunks of a request, root first. A chunk is named by its last block; one that the trace
/// does not name gets a private key.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub(super) keys: Vec<u32>,
    /// Those of chunks without a name.
    unnamed: Vec<u32>,
    flags: Vec<u8>,
    /// The deepest position with [`USED`], where there is one.
    deepest: Option<usize>,
}

impl Path {
    /// Reads the chunks of the first `tokens` tokens; at most `most` of them without a name.
    pub(super) fn read(
        &mut self,
        request: &EngineRequest<'_>,
        chunk_blocks: u64,
        tokens: u64,
        most: u64,
        private: &mut PrivateKeys,
    ) {
        let chunks = tokens / (chunk_blocks * u64::from(request.block_tokens));
        self.keys.clear();
        self.unnamed.clear();
        for chunk in 0..chunks {
            let key = request.name_of((chunk + 1) * chunk_blocks - 1).unwrap_or_else(|| {
                let key = private.take();
                self.unnamed.push(key);
                key
            });
            self.keys.push(key);
            if self.unnamed.len() as u64 >= most {
                break;
            }
        }
        self.flags.clear();
        self.flags.resize(self.keys.len(), 0);
        self.deepest = None;
    }

    /// Keys of the chunks without a name.
    pub(super) fn unnamed(&self) -> &[u32] {
        &self.unnamed
    }

    pub(super) fn has(&self, at: usize, flag: u8) -> bool {
        self.flags[at] & flag != 0
    }

    pub(super) fn set(&mut self, at: usize, flag: u8) {
        self.flags[at] |= flag;
        if flag & USED != 0 {
            self.deepest = self.deepest.max(Some(at));
        }
    }

    /// The deepest position ever used by this request.
    pub(super) fn deepest(&self) -> Option<usize> {
        self.deepest
    }
}

/// Keys of chunks without a name: they take room until they are evicted and forgotten, and nobody asks for them.
#[derive(Debug)]
pub(super) struct PrivateKeys {
    /// Keys from here on are private.
    first: u32,
    live: Vec<bool>,
    free: Vec<u32>,
}

impl PrivateKeys {
    pub(super) fn new(first: u32) -> Self {
        Self { first, live: Vec::new(), free: Vec::new() }
    }

    pub(super) fn is_private(&self, key: u32) -> bool {
        key >= self.first
    }

    /// Keys are below this.
    pub(super) fn end(&self) -> usize {
        self.first as usize + self.live.len()
    }

    fn take(&mut self) -> u32 {
        let key = self.free.pop().unwrap_or_else(|| {
            self.live.push(false);
            self.first + (self.live.len() as u32 - 1)
        });
        self.live[(key - self.first) as usize] = true;
        key
    }

    /// Nothing knows this key any more.
    pub(super) fn release(&mut self, key: u32) {
        let live = &mut self.live[(key - self.first) as usize];
        if std::mem::take(live) {
            self.free.push(key);
        }
    }
}
