//! The sink that every format feeds: rows in, forest and columns out, rejections and repairs counted.

use super::fields::{self, Ours};
use super::hints::Hints;
use super::id_list::IdList;
use super::links::Links;
use super::namespace::{Key, Namespaces, ScopeKey};
use super::notes::{Notes, Place, Places};
use super::options::{Namespace, ReadOptions, Scope, TimeUnit};
use super::row::{Problem, Row};
use super::starts::NO_OWNER;
use super::times::Times;
use super::token_hash;
use crate::error::{Error, Result};
use crate::trace::{Column, ForestBuilder, Kinds, NO_CODE, NO_LENGTH, Node, OutputIds};
use std::collections::BTreeMap;

/// Columns of the file's own that are kept beside those with a name of ours; further ones are left out.
pub const MAX_FOREIGN_COLUMNS: usize = 16;
const AUTO_NAMESPACE: [&str; 6] = ["model", "revision", "kv_dtype", "lora", "salt", "extra_keys"];
/// What a local id may be local to, the narrowest first.
const SCOPE_COLUMNS: [&str; 3] = ["trace_id", "play_id", "session"];

/// Fields that are not group columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Time,
    InputTokens,
    OutputTokens,
    BlockTokens,
    HashIds,
    RunStart,
    RunLength,
    TokenIds,
    Delay,
    OutputIds,
}

impl Slot {
    pub(crate) const COUNT: usize = 10;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::BlockTokens => "block_tokens",
            Self::HashIds => "hash_ids",
            Self::RunStart => "run_start",
            Self::RunLength => "run_length",
            Self::TokenIds => "token_ids",
            Self::Delay => "delay",
            Self::OutputIds => "output_hash_ids",
        }
    }
}

/// What to do with a key (or column) of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// One of our fields; of several names of it the smallest rank holds.
    Slot { slot: Slot, rank: u8, unit: Option<TimeUnit> },
    /// A group column.
    Group { column: u16, rank: u8 },
    /// A group column whose values may be nested.
    Raw { column: u16, rank: u8 },
    /// Says that the prompt holds images or other media.
    Media,
    /// Whose ids may be compared.
    Scope,
    /// A column of the file's own, not seen with a value yet.
    Foreign,
    /// Marks a row that may be no request.
    Kind,
    /// Of no use.
    Unused,
}

impl Row {
    pub(crate) fn set_tokens(&mut self, slot: Slot, tokens: Option<u32>) {
        match slot {
            Slot::InputTokens => self.input_tokens = tokens,
            Slot::OutputTokens => self.output_tokens = tokens,
            Slot::BlockTokens if tokens == Some(0) => {
                self.problems.push(Problem::new("bad_type", "block_tokens", b"0"));
            }
            _ => self.block_tokens = tokens,
        }
    }

    /// Begins a slot under a name of rank `rank`; `false` when a better name of it has come before. What a worse name
    /// held is forgotten, its problems too.
    pub(crate) fn begin_slot(&mut self, ranks: &mut [u8; Slot::COUNT], slot: Slot, rank: u8) -> bool {
        let taken = std::mem::replace(&mut ranks[slot as usize], rank);
        if rank > taken {
            ranks[slot as usize] = taken;
            return false;
        }
        if taken != u8::MAX {
            self.problems.retain(|problem| problem.field != slot.name());
        }
        true
    }

    /// Notes whether a list is there.
    pub(crate) fn set_listed(&mut self, slot: Slot, is: bool) {
        match slot {
            Slot::TokenIds => self.has_tokens = is,
            // A row without output ids has none: there is nothing to tell apart.
            Slot::OutputIds => {}
            _ => self.has_path = is,
        }
    }

    pub(crate) fn list(&mut self, slot: Slot) -> &mut IdList {
        match slot {
            Slot::RunStart => &mut self.run_start,
            Slot::RunLength => &mut self.run_length,
            Slot::TokenIds => &mut self.token_ids,
            Slot::OutputIds => &mut self.output_ids,
            _ => &mut self.ids,
        }
    }
}

/// The rows that were accepted, in file order.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) node: Vec<Node>,
    /// `NO_LENGTH` where the row has none.
    pub(crate) input_tokens: Vec<u32>,
    pub(crate) output_tokens: Vec<u32>,
    /// As stated, 0 where not; empty when no row states one.
    pub(crate) block_tokens: Vec<u32>,
    pub(crate) times: Times,
    pub(crate) places: Places,
    pub(crate) columns: Vec<Column>,
    /// Whose clock each row's time is on, [`NO_OWNER`] where it is everybody's; empty when all are.
    pub(crate) owners: Vec<u32>,
    pub(crate) links: Links,
    /// Output ids of the rows up to the last that has any; complete once [`super::assemble`] has padded them.
    pub(crate) outputs: OutputIds,
}

/// Takes rows from a format and keeps what a trace needs of them.
#[derive(Debug)]
pub(crate) struct RowSink {
    pub(crate) options: ReadOptions,
    pub(crate) rows: Rows,
    pub(crate) builder: ForestBuilder,
    pub(crate) notes: Notes,
    pub(crate) namespaces: Namespaces,
    pub(crate) namespace_columns: Vec<u16>,
    pub(crate) rejected_rows: u64,
    pub(crate) hints: Hints,
    /// Whether only times and lengths are wanted: paths are neither needed nor kept.
    pub(crate) lengths_only: bool,
    /// Rejected rows that state an input length and no blocks.
    pub(crate) unhashed_rows: u64,
    /// Rows whose blocks were renamed because sessions share a prefix.
    pub(crate) shared_prefixes: u64,
    owners: BTreeMap<ScopeKey, u32>,
    sessions: u64,
    session_names: BTreeMap<String, u64>,
    media: Option<(Place, u64)>,
    scope_columns: Vec<u16>,
    foreign_columns: usize,
    file: u32,
    /// What a header row of the file says for all its rows.
    header_block_tokens: Option<u32>,
    header_local: bool,
    key: Key,
    /// Which of `options.columns` some row has.
    mapped_seen: Vec<bool>,
}

impl RowSink {
    pub(crate) fn new(options: &ReadOptions) -> Result<Self> {
        options.check()?;
        let mut sink = Self {
            options: options.clone(),
            rows: Rows::default(),
            builder: ForestBuilder::new(),
            notes: Notes::new(options.strict),
            namespaces: Namespaces::default(),
            namespace_columns: Vec::new(),
            rejected_rows: 0,
            hints: Hints::default(),
            lengths_only: false,
            unhashed_rows: 0,
            shared_prefixes: 0,
            owners: BTreeMap::new(),
            sessions: 0,
            session_names: BTreeMap::new(),
            media: None,
            scope_columns: Vec::new(),
            foreign_columns: 0,
            file: 0,
            header_block_tokens: None,
            header_local: false,
            key: Key::default(),
            mapped_seen: vec![false; options.columns.len()],
        };
        let names: Vec<String> = match &options.namespace {
            Namespace::Auto => AUTO_NAMESPACE.iter().map(|&name| name.to_owned()).collect(),
            Namespace::None => Vec::new(),
            Namespace::Columns(names) => names.clone(),
        };
        for name in names {
            let ours =
                fields::by_our_name(&name).or_else(|| fields::resolve(&name, &options.columns).map(|f| f.0));
            let column = match ours {
                Some(Ours::Group(ours) | Ours::Raw(ours)) => sink.column(ours),
                None => sink.column(&name),
                Some(_) => {
                    let hint =
                        "namespaces are made of group columns such as model, lora, salt, session or tenant";
                    return Err(Error::config(format!("namespace: {name} is not a group column"), hint));
                }
            };
            sink.namespace_columns.push(column);
        }
        sink.scope_columns = SCOPE_COLUMNS.iter().map(|name| sink.column(name)).collect();
        Ok(sink)
    }

    /// Begins a file: places from now on are in it.
    pub(crate) fn begin_file(&mut self, name: &str) {
        self.file = self.notes.files.len() as u32;
        (self.header_block_tokens, self.header_local) = (None, false);
        self.notes.files.push(name.to_owned());
    }

    pub(crate) fn place(&self, line: u64) -> Place {
        Place { file: self.file, line }
    }

    /// The file's name without folders and ending.
    pub(crate) fn file_stem(&self) -> String {
        let name = self.notes.files.last().map_or("", String::as_str);
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        name.split('.').next().unwrap_or(name).to_owned()
    }

    /// The number of a session from 1, and a name that no session before it has: `name`, `name#2`, ...
    pub(crate) fn fresh_session(&mut self, name: &str) -> (u64, String) {
        self.sessions += 1;
        let mut count = self.session_names.get(name).copied().unwrap_or(0);
        loop {
            count += 1;
            let fresh = if count == 1 { name.to_owned() } else { format!("{name}#{count}") };
            if count == 1 || !self.session_names.contains_key(&fresh) {
                self.session_names.insert(fresh.clone(), 1);
                self.session_names.insert(name.to_owned(), count);
                return (self.sessions, fresh);
            }
        }
    }

    /// The group column of that name, new or known.
    pub(crate) fn column(&mut self, name: &str) -> u16 {
        let columns = &mut self.rows.columns;
        if let Some(at) = columns.iter().position(|column| column.name == name) {
            return at as u16;
        }
        columns.push(Column::new(name, 0));
        columns.len() as u16 - 1
    }

    /// What a key of the file is to us.
    pub(crate) fn field(&mut self, name: &str) -> Field {
        if let Some(at) = self.options.columns.iter().position(|(_, theirs)| theirs == name) {
            self.mapped_seen[at] = true;
        }
        let Some((ours, rank)) = fields::resolve(name, &self.options.columns) else {
            let known = self.rows.columns.iter().position(|column| column.name == name);
            return known.map_or(Field::Foreign, |at| Field::Group { column: at as u16, rank: u8::MAX });
        };
        let slot = match ours {
            Ours::Time => Slot::Time,
            Ours::InputTokens => Slot::InputTokens,
            Ours::OutputTokens => Slot::OutputTokens,
            Ours::HashIds => Slot::HashIds,
            Ours::OutputIds => Slot::OutputIds,
            Ours::RunStart => Slot::RunStart,
            Ours::RunLength => Slot::RunLength,
            Ours::BlockTokens => Slot::BlockTokens,
            Ours::Scope => return Field::Scope,
            Ours::TokenIds => Slot::TokenIds,
            Ours::Delay => Slot::Delay,
            Ours::Kind => return Field::Kind,
            Ours::Media => return Field::Media,
            Ours::Raw(name) => return Field::Raw { column: self.column(name), rank },
            Ours::Group(name) => return Field::Group { column: self.column(name), rank },
        };
        let unit = TimeUnit::of_field(name).filter(|_| matches!(slot, Slot::Time | Slot::Delay));
        Field::Slot { slot, rank, unit }
    }

    /// Refuses names that the caller gives and no row has: a misspelt name must not pass for an empty column.
    pub(crate) fn check_names(&self) -> Result<()> {
        let mut mapped = self.options.columns.iter().zip(&self.mapped_seen);
        if let Some(((ours, theirs), _)) = mapped.find(|(_, seen)| !**seen) {
            let message = format!("no row has a field {theirs}, which columns gives as {ours}");
            let hint = "check the name; names are compared letter by letter";
            return Err(self.notes.at(Error::trace("missing_field", message, hint), None));
        }
        if let Namespace::Columns(_) = &self.options.namespace {
            let columns = self.namespace_columns.iter().map(|&at| &self.rows.columns[at as usize]);
            if let Some(column) = columns.into_iter().find(|column| column.texts.is_empty()) {
                let message = format!("namespace: no row has a value of {}", column.name);
                return Err(Error::config(message, "leave it out, or check the name of the column"));
            }
        }
        Ok(())
    }

    /// A column of the file's own, as long as there are few.
    pub(crate) fn foreign_column(&mut self, name: &str) -> Field {
        if self.foreign_columns == MAX_FOREIGN_COLUMNS {
            return Field::Unused;
        }
        self.foreign_columns += 1;
        Field::Group { column: self.column(name), rank: u8::MAX }
    }

    /// Leaves out a row that is no request; a header's block size and scope hold for the rows behind it.
    fn foreign(&mut self, place: Place, row: &Row) {
        self.notes.mention("foreign_rows", 1, Some(place), None);
        self.header_block_tokens = row.block_tokens.or(self.header_block_tokens);
        self.header_local |= row.local_scope;
    }

    /// Rejects a row.
    pub(crate) fn reject(&mut self, line: u64, code: &str, value: &str) -> Result<()> {
        self.rejected_rows += 1;
        let value = Some(value).filter(|value| !value.is_empty());
        self.notes.note(code, 1, Some(self.place(line)), value)
    }

    /// Takes a row, or rejects it for the first of its problems.
    pub(crate) fn accept(&mut self, line: u64, row: &mut Row) -> Result<()> {
        let place = self.place(line);
        if let Some(key) = &row.duplicate_key {
            self.notes.note("duplicate_key", 1, Some(place), Some(key))?;
        }
        row.expand_runs();
        if row.has_tokens {
            row.check_tokens();
        }
        if let Some(problem) = row.problems.first() {
            let (code, value) = (problem.code, problem.value.clone());
            return self.reject(line, code, &value);
        }
        if !row.has_path && row.is_marked {
            self.foreign(place, row);
            return Ok(());
        }
        row.block_tokens = row.block_tokens.or(self.header_block_tokens);
        row.input_tokens = row.input_tokens.or(row.listed_tokens);
        row.local_scope |= self.header_local;
        if self.lengths_only {
            row.ids.clear();
            row.output_ids.clear();
            if row.input_tokens.is_none() {
                return self.reject(line, "missing_field", "input_tokens");
            }
        } else if !row.has_path && row.has_tokens {
            self.hash_tokens(place, row);
        } else if !row.has_path {
            self.unhashed_rows += u64::from(row.input_tokens.is_some());
            let problem = Problem::missing("hash_ids");
            return self.reject(line, problem.code, &problem.value);
        }
        if self.rows.node.len() >= u32::MAX as usize - 1 {
            let error =
                Error::trace("too_many_rows", "the trace has more than 4.29e9 rows", "split it by time");
            return Err(self.notes.at(error, Some(place)));
        }
        if row.has_media {
            self.note_media(place, row);
        }
        let namespace = self.namespace(place, row);
        let node = self.push_path(namespace, place, &mut row.ids)?;
        self.push_outputs(namespace, place, row)?;
        let rows = &mut self.rows;
        rows.node.push(node);
        rows.input_tokens.push(row.input_tokens.unwrap_or(NO_LENGTH));
        rows.output_tokens.push(row.output_tokens.unwrap_or(NO_LENGTH));
        if let Some(tokens) = row.block_tokens {
            rows.block_tokens.resize(rows.node.len() - 1, 0);
            rows.block_tokens.push(tokens);
        }
        rows.times.push(row.time);
        rows.places.push(place);
        let at = rows.node.len() as u32 - 1;
        if let Some(delay_us) = row.delay_us {
            rows.links.delay(at, delay_us);
        }
        for (request_id, delay_us) in &row.waits {
            rows.links.wait(at, request_id, *delay_us);
        }
        Ok(())
    }

    /// Makes blocks of a row's tokens. The size given by the caller holds against the row's own: ids are made
    /// here, so that one file can be read at several sizes.
    fn hash_tokens(&mut self, place: Place, row: &mut Row) {
        let stated = self.options.block_tokens.or(row.block_tokens);
        if stated.is_none() && !self.notes.has("block_tokens_inferred") {
            let size = token_hash::USUAL_BLOCK_TOKENS.to_string();
            self.notes.mention("block_tokens_inferred", 1, Some(place), Some(&size));
            let detail = format!("{size} tokens assumed: token ids can be cut into blocks of any size");
            self.notes.detail("block_tokens_inferred", detail);
        }
        let size = stated.unwrap_or(token_hash::USUAL_BLOCK_TOKENS);
        row.block_tokens = Some(size);
        row.has_path = true;
        let tokens = row.tokens();
        token_hash::blocks(&tokens, size, row.ids.numbers());
        row.input_tokens = row.input_tokens.or(Some(tokens.len() as u32));
    }

    /// Notes a prompt with media whose key may not tell them apart.
    fn note_media(&mut self, place: Place, row: &Row) {
        let key = self.rows.columns.iter().position(|column| column.name == "extra_keys");
        if key.is_none_or(|key| row.groups().all(|(column, _)| column as usize != key)) {
            self.media.get_or_insert((place, 0)).1 += 1;
        }
    }

    /// Says at the end what was counted on the way.
    pub(crate) fn finish_notes(&mut self) {
        if self.shared_prefixes > 0 {
            let count = self.shared_prefixes;
            self.notes.mention("local_scope", count, self.rows.places.first(), None);
            self.notes
                .also("local_scope", "blocks of tools and system are shared (shared_prefix=tool+system)");
        }
        if let Some((place, count)) = self.media.take() {
            self.notes.mention("mixed_namespaces", count, Some(place), Some("images without a key"));
            let detail = format!(
                "{count} rows carry images or other media and no extra_keys: if their ids do not cover them, equal \
                 ids may stand for different prompts and hits are too high"
            );
            self.notes.detail("mixed_namespaces", detail);
        }
    }

    /// Leaves out a row that is no request.
    pub(crate) fn skip_foreign(&mut self, line: u64, value: &str) {
        let place = Some(self.place(line));
        self.notes.mention("foreign_rows", 1, place, Some(value));
    }

    fn push_path(&mut self, namespace: u32, place: Place, ids: &mut IdList) -> Result<Node> {
        let node = if let Some(runs) = ids.runs() {
            self.builder.push_runs(namespace, runs)
        } else if ids.all_numbers() {
            self.builder.push(namespace, ids.numbers(), Kinds::Numbers)
        } else {
            self.notes.mention("text_blocks", 1, Some(place), None);
            let (numbers, is_text) = ids.mixed(|text| self.builder.text_number(text));
            self.builder.push(namespace, numbers, Kinds::Mixed(is_text))
        };
        node.map_err(|error| self.notes.at(error, Some(place)))
    }

    /// Keeps the output ids of the row at hand, which is not yet counted.
    fn push_outputs(&mut self, namespace: u32, place: Place, row: &Row) -> Result<()> {
        let ids = &row.output_ids;
        if ids.is_empty() {
            return Ok(());
        }
        if !ids.all_numbers() && row.ids.all_numbers() {
            self.notes.mention("text_blocks", 1, Some(place), None);
        }
        let outputs = &mut self.rows.outputs;
        outputs.pad(self.rows.node.len());
        outputs.push(namespace, ids.iter()).map_err(|error| self.notes.at(error, Some(place)))
    }

    /// Stores the group columns of a row and returns its namespace.
    fn namespace(&mut self, place: Place, row: &Row) -> u32 {
        let at = self.rows.node.len();
        for (column, value) in row.groups() {
            let column = &mut self.rows.columns[column as usize];
            column.codes.resize(at, NO_CODE);
            column.push(Some(value));
        }
        let columns = &self.rows.columns;
        let code = |column: u16| columns[column as usize].codes.get(at).copied().unwrap_or(NO_CODE);
        self.key.codes.clear();
        self.key.codes.extend(self.namespace_columns.iter().map(|&column| code(column)));
        self.key.block_tokens = row.block_tokens.unwrap_or(0);
        let local = match self.options.scope {
            Scope::Auto => row.local_scope,
            Scope::Local => true,
            Scope::Global => false,
        };
        let owner = if local || row.own_clock {
            let owner = self.scope_columns.iter().find(|&&column| code(column) != NO_CODE);
            owner.map_or(ScopeKey::File(place.file), |&column| ScopeKey::Column(column, code(column)))
        } else {
            ScopeKey::Global
        };
        self.key.scope = if local { owner } else { ScopeKey::Global };
        if owner != ScopeKey::Global {
            let fresh = self.owners.len() as u32;
            let number = *self.owners.entry(owner).or_insert(fresh);
            self.rows.owners.resize(at, NO_OWNER);
            self.rows.owners.push(number);
        }
        let number = self.namespaces.number(&self.key);
        if local {
            self.notes.mention("local_scope", 1, Some(place), None);
        }
        if let Some(position) = self.namespaces.differs(&self.key.codes) {
            let column = &self.rows.columns[self.namespace_columns[position] as usize];
            let value = column
                .codes
                .get(at)
                .map_or("none", |&c| if c == NO_CODE { "none" } else { column.texts.get(c) });
            let value = format!("{}: {value}", column.name);
            self.notes.mention("mixed_namespaces", 1, Some(place), Some(&value));
        }
        number
    }
}
