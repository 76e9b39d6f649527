//! Traces out: exact bytes, refusals, and what comes back.

use super::*;
use crate::trace::{ForestBuilder, IdTable, Kinds, Origin, Quality, Requests, Tail};
use proptest::prelude::*;

fn written(trace: &Trace, format: &str, packing: Packing) -> Vec<u8> {
    let mut out = Vec::new();
    write(trace, format, packing, &mut out, &Progress::default()).unwrap();
    out
}

/// Why a format cannot hold a trace.
fn refusal(trace: &Trace, format: &str) -> String {
    match write(trace, format, Packing::Plain, &mut Vec::new(), &Progress::default()) {
        Err(Error::Config { message, .. }) => message,
        other => panic!("wanted a refusal, got {other:?}"),
    }
}

fn sample() -> Trace {
    let text = [
        r#"{"timestamp":1500,"input_length":32,"output_length":4,"hash_ids":[7,8],"session":"a"}"#,
        r#"{"timestamp":2500,"input_length":20,"hash_ids":[7,9],"session":"b"}"#,
        r#"{"timestamp":2500,"input_length":0,"hash_ids":[],"session":"b"}"#,
        r#"{"timestamp":4000,"input_length":48,"output_length":0,"hash_ids":[7,8,10],"session":"a"}"#,
    ];
    read_ok(text.join("\n"), &sixteen())
}

#[test]
fn every_writer_is_known_once() {
    let names: Vec<&str> = writers().iter().map(|writer| writer.name).collect();
    assert_eq!(names, ["native", "mooncake", "bailian", "oracle_general", "parquet"]);
    for name in ["native", "parquet", "csv", ""] {
        assert!(refusal(&sample(), name).contains("as a stream of rows"));
    }
}

#[test]
fn bailian_bytes() {
    let want = concat!(
        r#"{"chat_id": 0, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 32, "output_length": 4, "type": "text", "turn": 1, "hash_ids": [7, 8]}"#,
        "\n",
        r#"{"chat_id": 1, "parent_chat_id": -1, "timestamp": 2.5, "input_length": 20, "type": "text", "turn": 1, "hash_ids": [7, 9]}"#,
        "\n",
        r#"{"chat_id": 2, "parent_chat_id": 1, "timestamp": 2.5, "input_length": 0, "type": "text", "turn": 2, "hash_ids": []}"#,
        "\n",
        r#"{"chat_id": 3, "parent_chat_id": 0, "timestamp": 4.0, "input_length": 48, "output_length": 0, "type": "text", "turn": 2, "hash_ids": [7, 8, 10]}"#,
        "\n",
    );
    let out = written(&sample(), "bailian", Packing::Plain);
    assert_eq!(String::from_utf8_lossy(&out), want);
    let again = read_ok(out, &ReadOptions::default());
    assert_eq!(again.origin.format, "bailian");
    assert_eq!(numbers(&again), numbers(&sample()));
    assert_eq!(again.requests.arrival_us, sample().requests.arrival_us);
}

#[test]
fn oracle_general_bytes() {
    let records: [(u32, u64, i64); 7] =
        [(1, 7, 2), (1, 8, 5), (2, 7, 4), (2, 9, -1), (4, 7, -1), (4, 8, -1), (4, 10, -1)];
    let mut want = Vec::new();
    for (seconds, id, next) in records {
        want.extend_from_slice(&seconds.to_le_bytes());
        want.extend_from_slice(&id.to_le_bytes());
        want.extend_from_slice(&16_u32.to_le_bytes());
        want.extend_from_slice(&next.to_le_bytes());
    }
    assert_eq!(written(&sample(), "oracle_general", Packing::Plain), want);
}

#[test]
fn packed_bytes_are_those_of_the_plain_file() {
    let trace = sample();
    let plain = written(&trace, "mooncake", Packing::Plain);
    for (name, packing) in [("t.jsonl.gz", Packing::Gzip), ("t.jsonl.zst", Packing::Zstd)] {
        assert_eq!(Packing::of_name(name), packing);
        let packed = written(&trace, "mooncake", packing);
        assert_eq!(packed, written(&trace, "mooncake", packing));
        assert!(packed != plain);
        assert_eq!(read_ok(packed, &sixteen()).sha256(), trace.sha256());
    }
    assert_eq!(Packing::of_name("t.jsonl"), Packing::Plain);
    let mut room = [0_u8; 10];
    for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
        let failed = write(&trace, "mooncake", packing, &mut room.as_mut_slice(), &Progress::default());
        assert!(matches!(failed, Err(Error::Trace(error)) if error.code == "io"));
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let row = |ids: &str, rest: &str| {
        let head = r#"{"timestamp":0,"input_length":32,"hash_ids":"#;
        read_ok(format!("{head}[1,2]}}\n{head}{ids}{rest}}}\n"), &ReadOptions::default())
    };
    let size = r#","block_size":16"#;
    for format in ["bailian", "oracle_general"] {
        assert!(refusal(&row(r#"["a","b"]"#, ""), format).contains("some ids are texts"));
        assert!(refusal(&row("[2,1]", ""), format).contains("two parents"));
        assert!(refusal(&row("[1,2]", r#","model":"m""#), format).contains("namespaces"));
        for trace in [row(r#"["a","b"]"#, ""), row("[2,1]", ""), row("[1,2]", r#","model":"m""#)] {
            assert!(!written(&trace.anonymize(false).unwrap(), format, Packing::Plain).is_empty());
        }
    }
    let wide = read_ok(
        r#"{"timestamp":0,"input_length":64,"block_size":64,"hash_ids":[1]}"#,
        &ReadOptions::default(),
    );
    assert_eq!(refusal(&wide, "bailian"), "bailian has blocks of 16 tokens, this trace of 64");
    let untimed = read_ok(format!(r#"{{"input_length":16,"hash_ids":[1]{size}}}"#), &ReadOptions::default());
    assert!(refusal(&untimed, "bailian").contains("needs times"));
    let early = read_ok(
        r#"{"timestamp_us":-1,"input_length":16,"block_size":16,"hash_ids":[1]}"#,
        &ReadOptions::default(),
    );
    assert!(refusal(&early, "oracle_general").contains("-1 us does not fit"));
    assert!(String::from_utf8_lossy(&written(&early, "bailian", Packing::Plain)).contains("-0.000001,"));
}

#[test]
fn stopping_a_writer() {
    let progress = Progress::default();
    progress.cancel();
    let stopped = write(&sample(), "mooncake", Packing::Plain, &mut Vec::new(), &progress);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

/// A trace of the given paths in the given namespaces, straight into the forest.
fn trace_of(paths: &[(u32, Vec<u64>)]) -> Trace {
    let mut builder = ForestBuilder::new();
    let node = paths.iter().map(|(ns, path)| builder.push(*ns, path, Kinds::Numbers).unwrap()).collect();
    let (forest, ids): (_, IdTable) = builder.finish();
    let requests = Requests {
        node,
        input_tokens: paths.iter().map(|(_, path)| path.len() as u32 * 16).collect(),
        output_tokens: vec![0; paths.len()],
        ..Requests::default()
    };
    Trace::new(forest, ids, requests, 16, Tail::Ceil, Origin::default(), Quality::default())
}

proptest! {
    #[test]
    fn anonymized_blocks_are_the_dense_numbers(
        paths in prop::collection::vec((0..3_u32, prop::collection::vec(0..4_u64, 0..8)), 1..40),
    ) {
        let trace = trace_of(&paths);
        let hidden = trace.anonymize(false).unwrap();
        let mut blocks = Vec::new();
        for request in 0..trace.len() {
            trace.forest.path(trace.requests.node[request], &mut blocks);
            let want: Vec<u64> = blocks.iter().map(|&block| u64::from(block)).collect();
            prop_assert_eq!(&numbers(&hidden)[request], &want);
        }
        // Written and read by numbers alone it is the same forest.
        let mut out = Vec::new();
        write_mooncake(&hidden, &mut out).unwrap();
        if paths.iter().any(|(_, path)| !path.is_empty()) {
            let again = read_ok(out, &sixteen());
            prop_assert_eq!(&again.forest, &hidden.forest);
            prop_assert!(again.origin.chained);
        }
    }
}
