//! What was found in a file, by the codes of `interface.md` section 4.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The rows were rejected.
    Error,
    /// The rows were kept, perhaps repaired.
    Warning,
    /// Nothing was changed.
    Info,
}

impl Severity {
    /// `error`, `warning` or `info`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// What a code means, whatever the file.
#[derive(Debug, Clone, Copy)]
pub struct CodeInfo {
    /// The code.
    pub code: &'static str,
    /// What happened to the rows.
    pub severity: Severity,
    /// Whether rows were changed to be usable (`strict` stops there).
    pub repair: bool,
    /// What was found.
    pub message: &'static str,
    /// What to do about it.
    pub hint: &'static str,
}

const fn code(
    code: &'static str,
    severity: Severity,
    repair: bool,
    message: &'static str,
    hint: &'static str,
) -> CodeInfo {
    CodeInfo { code, severity, repair, message, hint }
}

use Severity::{Error, Info, Warning};

/// Every code, in the order `trace.quality` lists them.
pub const CODES: &[CodeInfo] = &[
    code(
        "json_syntax",
        Error,
        false,
        "lines that are not valid JSON",
        "look at the line; a writer may have mixed other output into the file",
    ),
    code(
        "not_an_object",
        Error,
        false,
        "JSON values that are not an object",
        "every line must be one object {...}, or the file one array of objects",
    ),
    code(
        "truncated_last_line",
        Error,
        false,
        "the last line is cut in the middle",
        "the writer stopped early or is still writing; the row is left out",
    ),
    code("invalid_utf8", Error, false, "lines that are not UTF-8", "export the trace as UTF-8"),
    code(
        "missing_field",
        Error,
        false,
        "rows without a field they need",
        "see the fields of the format with kvreplay list formats",
    ),
    code(
        "bad_type",
        Error,
        false,
        "fields of a type they cannot have",
        "look at the line and at the fields of the format",
    ),
    code(
        "not_finite",
        Error,
        false,
        "numbers that are NaN or infinite",
        "the writer divided by zero or logged a missing value",
    ),
    code("negative_value", Error, false, "negative lengths", "lengths count tokens and cannot be negative"),
    code("id_out_of_range", Error, false, "ids outside 64 bits", "write larger ids as strings"),
    code("id_not_integer", Error, false, "ids with a fraction", "ids name blocks: integers or strings"),
    code(
        "ids_look_rounded",
        Error,
        false,
        "float ids of 2^53 or more, which several ids share",
        "the writer sent ids through floating point; export them as integers or strings",
    ),
    code(
        "duplicate_key",
        Warning,
        true,
        "objects that hold a key twice; the last value was taken",
        "fix the writer",
    ),
    code(
        "duplicate_id_in_request",
        Warning,
        false,
        "requests that list an id twice; the second is taken as another block",
        "ids should be chained hashes, which cannot repeat on a path",
    ),
    code(
        "duplicate_request",
        Warning,
        false,
        "rows equal in every field to an earlier row of the same request id; kept",
        "a retried or twice logged request counts twice",
    ),
    code(
        "id_with_two_parents",
        Warning,
        true,
        "ids seen below two different blocks; re-keyed as (parent, id)",
        "ids should be chained hashes: check how the trace hashes its blocks",
    ),
    code(
        "length_mismatch",
        Warning,
        true,
        "requests with more ids than their input length holds; the excess was cut",
        "check block_tokens and the input lengths",
    ),
    code(
        "empty_path",
        Info,
        false,
        "requests without blocks; all their tokens are computed",
        "nothing to do if prompts shorter than a block are left out on purpose",
    ),
    code(
        "mixed_block_tokens",
        Warning,
        false,
        "rows state different block sizes; each size is a namespace of its own",
        "analyse engines with different block sizes apart",
    ),
    code(
        "block_tokens_inferred",
        Info,
        false,
        "the block size was inferred from the lengths",
        "give --block-tokens to be sure",
    ),
    code(
        "mixed_namespaces",
        Info,
        false,
        "requests of different models, adapters, salts or scopes share no blocks",
        "choose other columns with --namespace",
    ),
    code(
        "local_scope",
        Info,
        false,
        "ids are local to their file, session or play",
        "--scope global compares ids of different sessions",
    ),
    code("time_unit_inferred", Info, false, "the unit of time was inferred", "give --time-unit to be sure"),
    code("mixed_time_units", Error, false, "times in different units", "convert the times to one unit"),
    code(
        "time_missing",
        Error,
        false,
        "rows without a time in a trace with times",
        "give every row a time, or none",
    ),
    code(
        "out_of_order",
        Info,
        false,
        "rows earlier than a row before them; sorted by time",
        "nothing to do if the file is in completion order",
    ),
    code(
        "time_ties",
        Info,
        false,
        "rows with the time of the row before; kept in file order",
        "coarse clocks make bursts that were none",
    ),
    code(
        "time_restart",
        Warning,
        true,
        "the clock starts again: the later segment was laid behind the one before",
        "analyse concatenated traces one by one to keep their own times",
    ),
    code(
        "reversed_log",
        Warning,
        false,
        "the file runs from the latest request to the earliest; sorted by time",
        "nothing to do",
    ),
    code(
        "clock_skew",
        Warning,
        false,
        "turns that arrive before the turn they follow",
        "clocks of several machines differ; hits near the skew are uncertain",
    ),
    code(
        "cumulative_rows",
        Info,
        false,
        "rows of a session hold its whole history",
        "nothing to do: every row is a full context",
    ),
    code(
        "delta_rows",
        Warning,
        false,
        "rows of a session seem to hold only their new part",
        "state that rows are deltas if they are; hits are too low otherwise",
    ),
    code(
        "session_reset",
        Info,
        false,
        "sessions that start over with a shorter context",
        "compaction or a new conversation under an old name",
    ),
    code("bom", Info, false, "a byte order mark was skipped", "nothing to do"),
    code("crlf", Info, false, "line ends are CRLF", "nothing to do"),
    code("blank_lines", Info, false, "blank lines were skipped", "nothing to do"),
    code("many_members", Info, false, "the archive has several members; all were read", "nothing to do"),
    code("text_blocks", Info, false, "ids are texts", "64-bit integers are smaller and faster to read"),
    code(
        "cut_archive",
        Warning,
        true,
        "the archive ends early; the rows before the cut were read",
        "fetch the file again",
    ),
    code(
        "lfs_pointer",
        Error,
        false,
        "the file is a Git LFS pointer, not the data",
        "run git lfs pull, or download the file itself",
    ),
    code(
        "foreign_rows",
        Info,
        false,
        "rows of another kind were skipped",
        "nothing to do: headers and events are not requests",
    ),
    code(
        "length_inferred",
        Warning,
        true,
        "rows without an input length; taken from the number of blocks",
        "log the input length",
    ),
    code(
        "future_schema",
        Warning,
        false,
        "the file states a newer schema than this version knows",
        "update kvreplay",
    ),
];

/// One code found in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Position of the code in [`CODES`].
    pub code: usize,
    /// How often it was found.
    pub count: u64,
    /// The line (row) of the file where it was found first, from 1.
    pub first_line: Option<u64>,
    /// What stood there, shortened.
    pub first_value: Option<String>,
    /// More than the code's own message, where there is more to say.
    pub detail: Option<String>,
}

/// Everything found in a trace, at most one entry per code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quality {
    findings: Vec<Finding>,
}

/// Position of a code in [`CODES`].
///
/// # Panics
/// When there is no such code (a mistake in this crate).
#[must_use]
pub(crate) fn position(code: &str) -> usize {
    CODES.iter().position(|c| c.code == code).unwrap_or_else(|| panic!("no quality code {code}"))
}

impl Quality {
    /// Notes one more occurrence of a code. The earliest line keeps its value.
    pub fn note(&mut self, code: &str, line: Option<u64>, value: Option<&str>) {
        self.note_many(code, 1, line, value);
    }

    /// Notes `count` occurrences, the first of them at `line`.
    pub fn note_many(&mut self, code: &str, count: u64, line: Option<u64>, value: Option<&str>) {
        if count == 0 {
            return;
        }
        let code = position(code);
        match self.findings.binary_search_by_key(&code, |f| f.code) {
            Ok(at) => {
                let finding = &mut self.findings[at];
                finding.count += count;
                if let (Some(line), Some(first)) = (line, finding.first_line)
                    && line < first
                {
                    finding.first_line = Some(line);
                    finding.first_value = value.map(shorten);
                }
            }
            Err(at) => {
                let first_value = value.map(shorten);
                self.findings
                    .insert(at, Finding { code, count, first_line: line, first_value, detail: None });
            }
        }
    }

    /// Adds a detail to a code already noted (block sizes that fit, the unit inferred).
    pub fn detail(&mut self, code: &str, detail: impl Into<String>) {
        let code = position(code);
        if let Ok(at) = self.findings.binary_search_by_key(&code, |f| f.code) {
            self.findings[at].detail = Some(detail.into());
        }
    }

    /// What was found, in the order of [`CODES`].
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How often a code was found.
    #[must_use]
    pub fn count(&self, code: &str) -> u64 {
        let code = position(code);
        self.findings.binary_search_by_key(&code, |f| f.code).map_or(0, |at| self.findings[at].count)
    }

    /// A finding put back as it was (reading a native file).
    pub fn restore(&mut self, finding: Finding) {
        let at = self.findings.partition_point(|f| f.code < finding.code);
        self.findings.insert(at, finding);
    }
}

/// At most 80 characters of a value, without control characters.
fn shorten(value: &str) -> String {
    let mut out: String =
        value.chars().take(80).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
    if value.chars().nth(80).is_some() {
        out.push('…');
    }
    out
}
