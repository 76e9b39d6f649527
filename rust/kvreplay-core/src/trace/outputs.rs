//! Ids of the blocks that fill while a request decodes (`output_hash_ids`), kept beside the paths.
//!
//! They are no part of a prompt: the forest, unique blocks and every total leave them out. Whoever lets decoded
//! blocks occupy a cache joins them to the paths with [`Trace::joined`](super::Trace::joined).

use super::ids::{Bits, Id, Texts};
use crate::error::{Error, Result};
use std::cmp::Ordering;

/// Output ids of every request, as given, in the order the blocks fill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputIds {
    /// End of each request's ids.
    ends: Vec<u32>,
    numbers: Vec<u64>,
    /// Bit per id: the number is that of a text in `texts`.
    text: Bits,
    texts: Texts,
    /// Namespace of each request that has ids (0 for the others): an empty prompt does not say it. Empty while
    /// all are 0.
    namespaces: Vec<u32>,
}

impl OutputIds {
    /// Adds the ids of the next request, which lie in a namespace of the trace's forest.
    ///
    /// # Errors
    /// `too_many_blocks` when there are more than 4.29e9 output ids.
    pub fn push<'a>(&mut self, namespace: u32, ids: impl IntoIterator<Item = Id<'a>>) -> Result<()> {
        let before = self.numbers.len();
        for id in ids {
            if self.numbers.len() >= u32::MAX as usize {
                return Err(too_many());
            }
            self.add(id);
        }
        self.end(if self.numbers.len() > before { namespace } else { 0 });
        Ok(())
    }

    fn add(&mut self, id: Id<'_>) {
        let number = match id {
            Id::Number(number) => number,
            Id::Text(text) => {
                self.text.set(self.numbers.len() as u32);
                u64::from(self.texts.number(text))
            }
        };
        self.numbers.push(number);
    }

    fn end(&mut self, namespace: u32) {
        if namespace != 0 {
            self.namespaces.resize(self.ends.len(), 0);
        }
        if namespace != 0 || !self.namespaces.is_empty() {
            self.namespaces.push(namespace);
        }
        self.ends.push(self.numbers.len() as u32);
    }

    /// Adds requests without output ids until there are `requests`.
    pub fn pad(&mut self, requests: usize) {
        while self.ends.len() < requests {
            self.end(0);
        }
    }

    /// Number of requests.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.ends.len()
    }

    /// Whether no request has an output id.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Number of output ids of a request.
    #[must_use]
    pub fn count(&self, request: usize) -> u32 {
        let (begin, end) = self.range(request);
        end - begin
    }

    /// The output ids of a request.
    #[must_use]
    pub fn of(&self, request: usize) -> impl ExactSizeIterator<Item = Id<'_>> {
        let (begin, end) = self.range(request);
        (begin..end).map(|at| {
            let number = self.numbers[at as usize];
            if self.text.get(at) { Id::Text(self.texts.get(number as u32)) } else { Id::Number(number) }
        })
    }

    /// The namespace of a request's output ids; 0 where it has none.
    #[must_use]
    pub fn namespace(&self, request: usize) -> u32 {
        self.namespaces.get(request).copied().unwrap_or(0)
    }

    /// Whether any id is a text.
    #[must_use]
    pub fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Whether any id lies in another namespace than the first.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// An order of two requests' ids, equal exactly when they list the same ids.
    #[must_use]
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        let ids = |request: usize| {
            let (begin, end) = self.range(request);
            (begin..end).map(|at| (self.text.get(at), self.numbers[at as usize]))
        };
        ids(a).cmp(ids(b))
    }

    /// The requests `keep`, in that order; `None` when they have no output ids.
    #[must_use]
    pub fn pick(&self, keep: &[u32]) -> Option<Self> {
        let mut out = Self::default();
        for &request in keep {
            out.copy(self, request as usize, u32::MAX);
        }
        (!out.is_empty()).then_some(out)
    }

    /// Every request's first `most(request)` ids at most.
    #[must_use]
    pub fn cut(&self, most: impl Fn(usize) -> u32) -> Self {
        let mut out = Self::default();
        for request in 0..self.requests() {
            out.copy(self, request, most(request));
        }
        out
    }

    fn copy(&mut self, from: &Self, request: usize, most: u32) {
        let before = self.numbers.len();
        from.of(request).take(most as usize).for_each(|id| self.add(id));
        self.end(if self.numbers.len() > before { from.namespace(request) } else { 0 });
    }

    fn range(&self, request: usize) -> (u32, u32) {
        let begin = if request == 0 { 0 } else { self.ends[request - 1] };
        (begin, self.ends[request])
    }
}

fn too_many() -> Error {
    Error::trace(
        "too_many_blocks",
        "the trace has more than 4.29e9 output ids",
        "split the trace by time and analyse the parts",
    )
}
