//! What a kind of traffic gives: one request after another, in order of arrival.

use super::prompt::Segment;

/// One request before its prompt becomes block ids.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Arrival in microseconds from the start.
    pub(super) arrival_us: i64,
    /// The prompt.
    pub(super) segments: Vec<Segment>,
    /// Length of the answer.
    pub(super) output_tokens: u32,
    /// The kind a request of `mixed` comes from.
    pub(super) workload: Option<&'static str>,
    /// Name of the session.
    pub(super) session: Option<String>,
    /// Name of the session that started this one (sub-agents).
    pub(super) parent: Option<String>,
    /// Name of the tenant.
    pub(super) tenant: Option<String>,
}

impl Draft {
    /// Empties the draft for the next request.
    pub(super) fn clear(&mut self) {
        let mut segments = std::mem::take(&mut self.segments);
        segments.clear();
        *self = Self { segments, ..Self::default() };
    }
}

/// An endless stream of requests in order of arrival.
pub(super) trait Source {
    /// Fills an empty draft with the next request.
    fn next(&mut self, draft: &mut Draft);
}
