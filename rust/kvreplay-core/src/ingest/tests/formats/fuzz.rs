//! Bounded, seeded fuzzing of every format: nothing crashes, cutting is said, strict agrees.

use super::*;
use proptest::prelude::*;

/// Valid files of every line format.
fn files() -> Vec<(&'static str, String)> {
    let lines: [(&str, &[&str]); 6] = [
        (
            "bailian",
            &[
                r#"{"chat_id":1,"parent_chat_id":-1,"timestamp":1.5,"input_length":40,"turn":1,"hash_ids":[1,2,3]}"#,
                r#"{"chat_id":2,"parent_chat_id":1,"timestamp":2,"input_length":50,"turn":2,"hash_ids":[1,2,4,5]}"#,
            ],
        ),
        (
            "lmcache_lookup_log",
            &[
                r#"{"timestamp":1,"request_id":"a","chunk_size":16,"seq_len":40,"chunk_hashes":["x",2]}"#,
                r#"{"timestamp":2,"request_id":"a","chunk_size":16,"seq_len":40,"chunk_hashes":["x",2]}"#,
            ],
        ),
        (
            "token_ids",
            &[
                r#"{"timestamp":1,"token_ids":[1,2,3],"session_id":"s"}"#,
                r#"{"delay":2.5,"token_ids":[1,2,3,4,5],"session_id":"s","extra_keys":[1]}"#,
            ],
        ),
        (
            "dynamo_request_trace",
            &[
                r#"{"schema":"dynamo.request.trace.v1","event_type":"tool_end"}"#,
                r#"{"event":{"event_type":"request_end","agent_context":{"session_id":"s"},"request":{"request_id":"a","request_received_ms":7,"replay":{"trace_block_size":4,"input_length":6,"input_sequence_hashes":[1,2]}}}}"#,
            ],
        ),
        (
            "dynamo_agentic",
            &[
                r#"{"schema":"dynamo.agentic_mooncake","version":2,"block_size":4,"hash_id_scope":"local"}"#,
                r#"{"request_id":"a","play_id":"p","input_length":4,"hash_ids":[1],"not_before_ms":0,"dependencies":[]}"#,
                r#"{"request_id":"b","play_id":"p","input_length":4,"hash_ids":[2],"dependencies":[{"request_id":"a","delay_ms":5}]}"#,
            ],
        ),
        (
            "weka",
            &[
                r#"{"id":"s","block_size":4,"hash_id_scope":"local","tool_tokens":4,"requests":["#,
                r#"{"t":0.5,"model":"m","in":8,"hash_ids":[1,2]},"#,
                r#"{"t":3,"agent_id":"a","duration_ms":1500,"requests":[{"t":0,"in":5,"hash_ids":[7]}]}],"x":1}"#,
            ],
        ),
    ];
    lines.iter().map(|(name, lines)| (*name, lines.join("\n") + "\n")).collect()
}

fn options(n: u8) -> ReadOptions {
    let mut options = ReadOptions { block_tokens: (n & 1 == 1).then_some(4), ..ReadOptions::default() };
    if n & 2 == 2 {
        options.set_session_rows("delta").unwrap();
    }
    if n & 4 == 4 {
        options.set_shared_prefix("tool+system").unwrap();
        options.sessions.set_rule("uniform(1h)").unwrap();
        options.sessions.concurrency = Some(2);
    }
    options
}

/// What every trace must hold, whatever was read.
fn sound(trace: &Trace) {
    for request in 0..trace.len() {
        let input = trace.requests.input_tokens[request];
        assert!(trace.path_len(request) <= input.div_ceil(trace.block_tokens_of(request)));
    }
    assert!(trace.requests.arrival_us.as_ref().is_none_or(|times| times.is_sorted()));
    assert!(!trace.is_empty());
}

#[test]
fn cut_at_every_byte_keeps_the_rows_before() {
    for (name, text) in files() {
        let options =
            ReadOptions { format: name.to_owned(), block_tokens: Some(4), ..ReadOptions::default() };
        let options = ReadOptions { block_tokens: (name == "token_ids").then_some(4), ..options };
        let whole = read_ok(text.as_str(), &options);
        let rows = paths(&whole);
        for cut in 0..text.len() - 1 {
            match try_read(&text.as_bytes()[..cut], &options) {
                Err(Error::Trace(error)) => assert!(!error.hint.is_empty()),
                Err(error) => panic!("{error}"),
                Ok(trace) => {
                    assert_eq!(paths(&trace), rows[..trace.len()], "{name} cut at {cut}");
                    let between = text.as_bytes()[..cut].ends_with(b"\n") || text.as_bytes()[cut] == b'\n';
                    let said = trace.quality.count("truncated_last_line") == 1;
                    assert!(said || (between && name != "weka"), "{name} cut at {cut}");
                }
            }
        }
    }
}

fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), any::<u8>(), 0..4_u8);
    let file = prop::sample::select(files());
    (file, prop::collection::vec(edit, 1..6)).prop_map(|((_, text), edits)| {
        let mut bytes = text.into_bytes();
        for (at, with, how) in edits {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = with,
                1 => bytes.insert(at, with),
                2 => bytes[at] = b"{}[]\",:\\\n-.e019N"[with as usize % 16],
                _ => drop(bytes.remove(at)),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(crate::ingest::tests::cases(800))]
    #[test]
    fn mutated_files_never_crash(bytes in mutated(), n in 0..8_u8) {
        if let Ok(trace) = try_read(bytes.as_slice(), &options(n)) {
            sound(&trace);
            let again = read_ok(bytes.as_slice(), &options(n));
            prop_assert_eq!(again.sha256(), trace.sha256());
            let flawed = trace.quality.findings().iter().any(|f| {
                CODES[f.code].repair || CODES[f.code].severity == crate::trace::Severity::Error
            });
            let strict = try_read(bytes.as_slice(), &strict(options(n)));
            prop_assert!(strict.is_ok() || flawed, "{:?}", strict.err());
        }
    }

    #[test]
    fn arbitrary_bytes_never_crash(bytes in prop::collection::vec(any::<u8>(), 0..120), n in 0..8_u8, at in 0..12_usize) {
        let name = formats()[at].name;
        let head = files().into_iter().find(|file| file.0 == name).map_or(String::new(), |file| file.1);
        let half = &head.as_bytes()[..head.len() / 2];
        let options = ReadOptions { format: name.to_owned(), ..options(n) };
        for text in [bytes.clone(), [half, &bytes].concat()] {
            if let Ok(trace) = try_read(text, &options) {
                sound(&trace);
            }
        }
    }

    #[test]
    fn lengths_of_mutated_files_never_crash(bytes in mutated()) {
        let _ = read_lengths(vec![source("t", bytes)], &ReadOptions::default(), &Progress::default());
    }
}
