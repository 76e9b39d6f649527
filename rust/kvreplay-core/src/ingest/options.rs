//! How to read a trace, as the caller asks for it.

use super::starts::SessionStarts;
use crate::error::{Error, Result};
use crate::trace::Tail;

/// Unit of the times in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// ISO 8601 texts, with or without an offset (without one: UTC).
    Iso,
}

impl TimeUnit {
    /// `s`, `ms`, `us`, `ns` or `iso`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Millis => "ms",
            Self::Micros => "us",
            Self::Nanos => "ns",
            Self::Iso => "iso",
        }
    }

    /// The unit a field's name ends in (`arrival_time_ns`, `not_before_ms`), if it does.
    #[must_use]
    pub(crate) fn of_field(name: &str) -> Option<Self> {
        match name.rsplit_once('_')?.1 {
            "s" | "sec" | "secs" | "seconds" => Some(Self::Seconds),
            "ms" | "millis" => Some(Self::Millis),
            "us" | "micros" => Some(Self::Micros),
            "ns" | "nanos" => Some(Self::Nanos),
            _ => None,
        }
    }
}

/// Whose ids may be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// As each row says (`hash_id_scope`), global where it says nothing.
    Auto,
    /// Ids mean something only inside their trace, play, session or file.
    Local,
    /// Ids are comparable everywhere, whatever the rows say.
    Global,
}

/// What may not share KV besides block sizes and local scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespace {
    /// Model, weight revision, KV dtype, `LoRA` and salt, as far as the rows name them.
    Auto,
    /// Nothing.
    None,
    /// These columns, by our names or the file's.
    Columns(Vec<String>),
}

/// What the rows of a session hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRows {
    /// Taken for cumulative; `delta_rows` warns when they look like deltas.
    Auto,
    /// Every row is a whole prompt.
    Cumulative,
    /// Every row holds what its turn adds: the session's earlier inputs and outputs stand before it.
    Delta,
}

/// Blocks that sessions with local ids have in common all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedPrefix {
    /// None: ids of different sessions are never compared.
    None,
    /// The blocks of tools and system prompt, where sessions state how many tokens those have (`weka`).
    ToolSystem,
}

/// How to read a trace. `Default` is what a user gets who says nothing.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Name of a format of [`super::formats`], or `auto`.
    pub format: String,
    /// Tokens per block; `None` = as the rows state or as their lengths show.
    pub block_tokens: Option<u32>,
    /// Whether partial last blocks are listed; `None` = as the lengths show.
    pub tail: Option<Tail>,
    /// Unit of the times; `None` = as names, magnitudes and fractions show.
    pub time_unit: Option<TimeUnit>,
    /// Whose ids may be compared.
    pub scope: Scope,
    /// What may not share KV.
    pub namespace: Namespace,
    /// Stop at the first row that would be rejected or repaired.
    pub strict: bool,
    /// Pairs (our name, the file's name) that replace the names a format knows.
    pub columns: Vec<(String, String)>,
    /// What the rows of a session hold.
    pub session_rows: SessionRows,
    /// Blocks that sessions with local ids have in common.
    pub shared_prefix: SharedPrefix,
    /// When sessions begin whose times count from their own start.
    pub sessions: SessionStarts,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: "auto".to_owned(),
            block_tokens: None,
            tail: None,
            time_unit: None,
            scope: Scope::Auto,
            namespace: Namespace::Auto,
            strict: false,
            columns: Vec::new(),
            session_rows: SessionRows::Auto,
            shared_prefix: SharedPrefix::None,
            sessions: SessionStarts::default(),
        }
    }
}

impl ReadOptions {
    /// Sets `tail` from `auto`, `ceil` or `floor`.
    ///
    /// # Errors
    /// `Config` for any other text.
    pub fn set_tail(&mut self, text: &str) -> Result<()> {
        self.tail = match text {
            "auto" => None,
            "ceil" => Some(Tail::Ceil),
            "floor" => Some(Tail::Floor),
            _ => return Err(unknown("tail", text, "auto, ceil or floor")),
        };
        Ok(())
    }

    /// Sets `time_unit` from `auto`, `s`, `ms`, `us`, `ns` or `iso`.
    ///
    /// # Errors
    /// `Config` for any other text.
    pub fn set_time_unit(&mut self, text: &str) -> Result<()> {
        self.time_unit = match text {
            "auto" => None,
            "s" => Some(TimeUnit::Seconds),
            "ms" => Some(TimeUnit::Millis),
            "us" => Some(TimeUnit::Micros),
            "ns" => Some(TimeUnit::Nanos),
            "iso" => Some(TimeUnit::Iso),
            _ => return Err(unknown("time_unit", text, "auto, s, ms, us, ns or iso")),
        };
        Ok(())
    }

    /// Sets `scope` from `auto`, `local` or `global`.
    ///
    /// # Errors
    /// `Config` for any other text.
    pub fn set_scope(&mut self, text: &str) -> Result<()> {
        self.scope = match text {
            "auto" => Scope::Auto,
            "local" => Scope::Local,
            "global" => Scope::Global,
            _ => return Err(unknown("scope", text, "auto, local or global")),
        };
        Ok(())
    }

    /// Sets `session_rows` from `auto`, `cumulative` or `delta`.
    ///
    /// # Errors
    /// `Config` for any other text.
    pub fn set_session_rows(&mut self, text: &str) -> Result<()> {
        self.session_rows = match text {
            "auto" => SessionRows::Auto,
            "cumulative" => SessionRows::Cumulative,
            "delta" => SessionRows::Delta,
            _ => return Err(unknown("session_rows", text, "auto, cumulative or delta")),
        };
        Ok(())
    }

    /// Sets `shared_prefix` from `none` or `tool+system`.
    ///
    /// # Errors
    /// `Config` for any other text.
    pub fn set_shared_prefix(&mut self, text: &str) -> Result<()> {
        self.shared_prefix = match text {
            "none" => SharedPrefix::None,
            "tool+system" => SharedPrefix::ToolSystem,
            _ => return Err(unknown("shared_prefix", text, "none or tool+system")),
        };
        Ok(())
    }

    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// `Config` for a block of 0 tokens, a name of ours in `columns` that does not exist or is given twice, no
    /// session at a time, or a shared prefix where nothing may be shared.
    pub fn check(&self) -> Result<()> {
        if self.block_tokens == Some(0) {
            return Err(Error::config("block_tokens is 0", "a block holds at least one token"));
        }
        if self.sessions.concurrency == Some(0) {
            return Err(Error::config("concurrency is 0", "at least one session runs at a time"));
        }
        if self.shared_prefix != SharedPrefix::None && self.scope != Scope::Auto {
            let hint = "leave scope at auto: the shared prefix alone is compared between sessions";
            return Err(Error::config("shared_prefix and scope contradict each other", hint));
        }
        for (at, (ours, _)) in self.columns.iter().enumerate() {
            if super::fields::by_our_name(ours).is_none() {
                let known = super::fields::our_names().join(", ");
                return Err(Error::config(
                    format!("columns: there is no field {ours}"),
                    format!("one of {known}"),
                ));
            }
            if self.columns[..at].iter().any(|(other, _)| other == ours) {
                return Err(Error::config(
                    format!("columns: {ours} is given twice"),
                    "give each field one column",
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn unknown(option: &str, text: &str, choices: &str) -> Error {
    Error::config(format!("{option}: {text:?} is not known"), format!("one of {choices}"))
}
