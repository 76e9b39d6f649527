//! The names under which formats keep our fields.

/// What a field of a row is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ours {
    Time,
    InputTokens,
    OutputTokens,
    HashIds,
    /// Ids of the blocks that fill while decoding.
    OutputIds,
    RunStart,
    RunLength,
    BlockTokens,
    /// Tokens of the prompt, to be hashed into blocks.
    TokenIds,
    /// Time after the turn before (closed loop).
    Delay,
    /// `local` or `global`: whose ids may be compared.
    Scope,
    /// A group column of this name.
    Group(&'static str),
    /// A group column whose values may be lists or objects; they are kept as they are written.
    Raw(&'static str),
    /// Says that the prompt holds images or other media.
    Media,
    /// Marks a row that may be no request: a header, an event.
    Kind,
}

/// Our names that a caller may map, with what they are.
const OUR_NAMES: &[(&str, Ours)] = &[
    ("time", Ours::Time),
    ("input_tokens", Ours::InputTokens),
    ("output_tokens", Ours::OutputTokens),
    ("hash_ids", Ours::HashIds),
    ("output_hash_ids", Ours::OutputIds),
    ("run_start", Ours::RunStart),
    ("run_length", Ours::RunLength),
    ("block_tokens", Ours::BlockTokens),
    ("token_ids", Ours::TokenIds),
    ("delay", Ours::Delay),
    ("request_id", Ours::Group("request_id")),
    ("session", Ours::Group("session")),
    ("parent", Ours::Group("parent")),
    ("turn", Ours::Group("turn")),
    ("tenant", Ours::Group("tenant")),
    ("model", Ours::Group("model")),
    ("revision", Ours::Group("revision")),
    ("kv_dtype", Ours::Group("kv_dtype")),
    ("lora", Ours::Group("lora")),
    ("salt", Ours::Group("salt")),
    ("extra_keys", Ours::Raw("extra_keys")),
    ("trace_id", Ours::Group("trace_id")),
    ("play_id", Ours::Group("play_id")),
    ("observed_cached_tokens", Ours::Group("observed_cached_tokens")),
    ("observed_ttft", Ours::Group("observed_ttft")),
];

/// Names in files. Where a row has several names of one field, the first in this list holds.
///
/// Sources: Mooncake FAST'25 release, `AIPerf` 0.13 loaders, Dynamo 1.6 `MooncakeRow` and its aliases,
/// kvcache-simulator, openanolis kvcache-calculator.
const ALIASES: &[(&str, Ours)] = &[
    ("timestamp", Ours::Time),
    ("timestamp_ms", Ours::Time),
    ("timestamp_us", Ours::Time),
    ("time", Ours::Time),
    ("created_time", Ours::Time),
    ("created_at", Ours::Time),
    ("arrival_time", Ours::Time),
    ("arrival", Ours::Time),
    ("arrival_us", Ours::Time),
    ("arrival_ms", Ours::Time),
    ("arrival_time_ms", Ours::Time),
    ("arrival_time_ns", Ours::Time),
    ("timestamp_start_unix_ms", Ours::Time),
    ("request_received_ms", Ours::Time),
    ("not_before_ms", Ours::Time),
    ("ts", Ours::Time),
    ("t", Ours::Time),
    ("TIMESTAMP", Ours::Time),
    ("Timestamp", Ours::Time),
    ("input_length", Ours::InputTokens),
    ("input_tokens", Ours::InputTokens),
    ("prompt_tokens", Ours::InputTokens),
    ("in", Ours::InputTokens),
    ("seq_len", Ours::InputTokens),
    ("input_toks", Ours::InputTokens),
    ("ContextTokens", Ours::InputTokens),
    ("Request tokens", Ours::InputTokens),
    ("output_length", Ours::OutputTokens),
    ("output_tokens", Ours::OutputTokens),
    ("completion_tokens", Ours::OutputTokens),
    ("out", Ours::OutputTokens),
    ("output_toks", Ours::OutputTokens),
    ("GeneratedTokens", Ours::OutputTokens),
    ("Response tokens", Ours::OutputTokens),
    ("hash_ids", Ours::HashIds),
    ("block_hashes", Ours::HashIds),
    ("total_hashes", Ours::HashIds),
    ("input_sequence_hashes", Ours::HashIds),
    ("chunk_hashes", Ours::HashIds),
    ("output_hash_ids", Ours::OutputIds),
    ("token_ids", Ours::TokenIds),
    ("prompt_token_ids", Ours::TokenIds),
    ("input_token_ids", Ours::TokenIds),
    ("input_tok_ids", Ours::TokenIds),
    ("run_start", Ours::RunStart),
    ("run_length", Ours::RunLength),
    ("block_size", Ours::BlockTokens),
    ("block_tokens", Ours::BlockTokens),
    ("trace_block_size", Ours::BlockTokens),
    ("chunk_size", Ours::BlockTokens),
    ("hash_id_scope", Ours::Scope),
    ("session_id", Ours::Group("session")),
    ("session", Ours::Group("session")),
    ("conversation_id", Ours::Group("session")),
    ("Session ID", Ours::Group("session")),
    ("provided_session_id", Ours::Group("session")),
    ("poor_man_session_id", Ours::Group("session")),
    ("chat_id", Ours::Group("chat_id")),
    ("parent_chat_id", Ours::Group("parent")),
    ("parent_request_id", Ours::Group("parent")),
    ("parent", Ours::Group("parent")),
    ("turn", Ours::Group("turn")),
    ("request_id", Ours::Group("request_id")),
    ("req_id", Ours::Group("request_id")),
    ("tenant", Ours::Group("tenant")),
    ("tenant_id", Ours::Group("tenant")),
    ("model", Ours::Group("model")),
    ("model_name", Ours::Group("model")),
    ("Model", Ours::Group("model")),
    ("revision", Ours::Group("revision")),
    ("model_revision", Ours::Group("revision")),
    ("kv_dtype", Ours::Group("kv_dtype")),
    ("kv_cache_dtype", Ours::Group("kv_dtype")),
    ("lora", Ours::Group("lora")),
    ("lora_name", Ours::Group("lora")),
    ("lora_id", Ours::Group("lora")),
    ("cache_salt", Ours::Group("salt")),
    ("salt", Ours::Group("salt")),
    ("trace_id", Ours::Group("trace_id")),
    ("play_id", Ours::Group("play_id")),
    ("schema", Ours::Kind),
    ("event_type", Ours::Kind),
    ("extra_keys", Ours::Raw("extra_keys")),
    ("mm_hashes", Ours::Raw("extra_keys")),
    ("observed_cached_tokens", Ours::Group("observed_cached_tokens")),
    ("cached_tokens", Ours::Group("observed_cached_tokens")),
    ("observed_ttft", Ours::Group("observed_ttft")),
    ("ttft_ms", Ours::Group("observed_ttft")),
    ("delay", Ours::Delay),
    ("delay_ms", Ours::Delay),
    ("images", Ours::Media),
    ("image", Ours::Media),
    ("image_urls", Ours::Media),
    ("num_images", Ours::Media),
    ("image_count", Ours::Media),
    ("has_image", Ours::Media),
    ("multimodal", Ours::Media),
    ("multi_modal_data", Ours::Media),
];

/// Columns in the order they come out; others follow by name.
pub(crate) const COLUMN_ORDER: &[&str] = &[
    "request_id",
    "session",
    "parent",
    "turn",
    "tenant",
    "model",
    "revision",
    "kv_dtype",
    "lora",
    "salt",
    "extra_keys",
    "trace_id",
    "play_id",
    "observed_cached_tokens",
    "observed_ttft",
];

/// What one of our own names means.
pub(crate) fn by_our_name(name: &str) -> Option<Ours> {
    OUR_NAMES.iter().find(|(ours, _)| *ours == name).map(|&(_, what)| what)
}

/// Our names that can be mapped.
pub(crate) fn our_names() -> Vec<&'static str> {
    OUR_NAMES.iter().map(|&(name, _)| name).collect()
}

/// What a name in a file means, and the rank of that name among those of the field.
///
/// `mapping` holds the caller's pairs (our name, the file's): a mapped field has no other name.
pub(crate) fn resolve(name: &str, mapping: &[(String, String)]) -> Option<(Ours, u8)> {
    if let Some((ours, _)) = mapping.iter().find(|(_, theirs)| theirs == name) {
        return by_our_name(ours).map(|what| (what, 0));
    }
    let at = ALIASES.iter().position(|(alias, _)| *alias == name)?;
    let what = ALIASES[at].1;
    let mapped = mapping.iter().any(|(ours, _)| by_our_name(ours) == Some(what));
    (!mapped).then_some((what, at as u8))
}

/// Whether a header of names could belong to a trace.
pub(crate) fn looks_like_header<'a>(
    names: impl Iterator<Item = &'a str>,
    mapping: &[(String, String)],
) -> bool {
    let mut known = 0;
    for name in names {
        known += u32::from(resolve(name, mapping).is_some());
    }
    known >= 2
}

/// Whether a column of this name, written to a file, is read back as that column and as nothing else.
#[must_use]
pub fn keeps_column(name: &str) -> bool {
    match resolve(name, &[]) {
        None => true,
        Some((Ours::Group(group), _)) => group == name,
        Some(_) => false,
    }
}

/// The names under which a file may keep a field.
pub(crate) fn names_of(what: Ours, mapping: &[(String, String)]) -> Vec<&str> {
    let mapped: Vec<&str> = mapping
        .iter()
        .filter(|(ours, _)| by_our_name(ours) == Some(what))
        .map(|(_, theirs)| theirs.as_str())
        .collect();
    if !mapped.is_empty() {
        return mapped;
    }
    ALIASES.iter().filter(|(_, ours)| *ours == what).map(|&(name, _)| name).collect()
}
