//! Dynamo: request traces with what was observed, agentic traces with waits.

use super::*;

fn end(id: &str, received_ms: u64, rest: &str, replay: &str) -> String {
    format!(
        "{{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"request_end\",\"event_time_unix_ms\":9,\
         \"agent_context\":{{\"session_id\":\"s\",\"parent_session_id\":\"p\"}},\
         \"request\":{{\"request_id\":\"{id}\",\"model\":\"m\",\"output_tokens\":2,\"request_received_ms\":{received_ms}{rest},\
         \"worker\":{{\"prefill_worker_id\":7}},\"replay\":{replay}}}}}"
    )
}

fn replay(input: u32, ids: &str) -> String {
    format!("{{\"trace_block_size\":4,\"input_length\":{input},\"input_sequence_hashes\":{ids}}}")
}

const T: u64 = 1_764_400_000_000;

#[test]
fn events_of_a_deployment() {
    let observed = ",\"cached_tokens\":4,\"ttft_ms\":12.5,\"kv_hit_rate\":0.5,\"input_tokens\":99";
    let text = [
        "{\"event_type\":\"request_payload\",\"request_id\":\"b\"}".to_owned(),
        end("b", T + 30, observed, &replay(6, "[18446744073709551615,2]")),
        format!("{{\"timestamp\":1,\"event\":{}}}", end("a", T + 10, "", &replay(4, "[18446744073709551615]"))),
        "{\"schema\":\"dynamo.request.trace.v1\",\"event_type\":\"tool_end\",\"tool\":{\"tool_call_id\":\"x\"}}".to_owned(),
    ]
    .join("\n");
    let trace = read_as("dynamo_request_trace", &text, &ReadOptions::default());
    assert_eq!(numbers(&trace), [vec![u64::MAX], vec![u64::MAX, 2]]);
    let us = |ms: u64| (T + ms) as i64 * 1_000;
    assert_eq!(trace.requests.arrival_us, Some(vec![us(10), us(30)]));
    assert_eq!((trace.requests.input_tokens.as_slice(), trace.block_tokens), (&[4, 6][..], 4));
    assert_eq!(trace.requests.output_tokens, [2, 2]);
    assert_eq!(column(&trace, "request_id"), [Some("a"), Some("b")]);
    assert_eq!(column(&trace, "session"), [Some("s"), Some("s")]);
    assert_eq!(column(&trace, "parent_session_id"), [Some("p"), Some("p")]);
    assert_eq!(column(&trace, "observed_cached_tokens"), [None, Some("4")]);
    assert_eq!(column(&trace, "observed_ttft"), [None, Some("12.5")]);
    assert_eq!(column(&trace, "prefill_worker_id"), [Some("7"), Some("7")]);
    assert_eq!(column(&trace, "kv_hit_rate"), [None, Some("0.5")]);
    let want = [
        ("out_of_order", 1, Some(3), Some("20000 us early")),
        ("cumulative_rows", 1, Some(2), Some("s")),
        ("foreign_rows", 2, Some(1), Some("request_payload")),
    ];
    assert_eq!(findings(&trace), want);
}

#[test]
fn rows_without_a_replay_and_paths_that_do_not_fit() {
    let text = [
        end("a", T, "", "null"),
        end("b", T + 1, "", &replay(6, "[1]")),
        end("c", T + 2, "", &replay(6, "[1,2,3]")),
        "[1]".to_owned(),
        "{\"schema\":".to_owned(),
    ]
    .join("\n");
    let trace = read_as("dynamo_request_trace", &text, &ReadOptions::default());
    assert_eq!(numbers(&trace), [vec![1], vec![1, 2]]);
    assert_eq!(trace.tail, crate::trace::Tail::Ceil);
    let want = [
        ("not_an_object", 1, Some(4), Some("[1]")),
        ("truncated_last_line", 1, Some(5), Some("{\"schema\":")),
        ("missing_field", 1, Some(1), Some("hash_ids")),
        ("length_mismatch", 2, Some(2), Some("1 ids, 6 tokens of 4 a block")),
    ];
    assert_eq!(findings(&trace)[..4], want);
    let newer = end("a", T, "", &replay(4, "[1]")).replace("trace.v1", "trace.v2");
    let trace = read_as("dynamo_request_trace", &newer, &ReadOptions::default());
    assert_eq!(findings(&trace), [("future_schema", 1, Some(1), Some("dynamo.request.trace.v2"))]);
}

#[test]
fn shards_that_overlap_are_no_restart() {
    let shard = |from: u64| -> String {
        (0..4)
            .map(|n| end(&format!("{from}-{n}"), T + from + n * 100, "", &replay(4, "[1]")) + "\n")
            .collect()
    };
    let sources = vec![source("a", shard(0)), source("b", shard(0))];
    let trace = read(sources, &ReadOptions::default(), &Progress::default()).unwrap();
    assert_eq!(trace.quality.count("time_restart"), 0);
    assert_eq!(trace.quality.count("out_of_order"), 3);
    let times = trace.requests.arrival_us.clone().unwrap();
    assert_eq!(times[7] - times[0], 300_000);
}

const HEADER: &str =
    "{\"schema\":\"dynamo.agentic_mooncake\",\"version\":2,\"block_size\":4,\"hash_id_scope\":\"local\"}\n";

fn agentic(id: &str, play: &str, ids: &str, not_before: &str, dependencies: &str) -> String {
    format!(
        "{{\"request_id\":\"{id}\",\"play_id\":\"{play}\",\"session_id\":\"root\",\"input_length\":8,\"output_length\":2,\
         \"hash_ids\":{ids},\"not_before_ms\":{not_before},\"dependencies\":{dependencies}}}\n"
    )
}

fn on(id: &str, delay_ms: &str) -> String {
    format!(
        "{{\"request_id\":\"{id}\",\"trigger\":\"completion\",\"delay_ms\":{delay_ms},\"relation\":\"join\"}}"
    )
}

#[test]
fn agentic_rows_arrive_when_what_they_wait_for_has() {
    let text = [
        HEADER.to_owned(),
        agentic("a", "p", "[1,2]", "0", "[]"),
        agentic("b", "p", "[1,3]", "0", &format!("[{}]", on("a", "5"))),
        agentic("c", "p", "[1,4]", "null", &format!("[{},{}]", on("a", "1"), on("b", "1.5"))),
        agentic("d", "p", "[1,5]", "100", &format!("[{}]", on("c", "1"))),
        agentic("a", "q", "[1,2]", "3", "[]"),
        agentic("b", "q", "[1,2]", "null", &format!("[{}]", on("a", "10"))),
    ]
    .concat();
    let trace = read_as("dynamo_agentic", &text, &ReadOptions::default());
    let order = column(&trace, "request_id");
    assert_eq!(order, ["a", "a", "b", "c", "b", "d"].map(Some));
    assert_eq!(trace.requests.arrival_us, Some(vec![0, 3_000, 5_000, 6_500, 13_000, 100_000]));
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces, trace.block_tokens), (5 + 2, 2, 4));
    assert_eq!(trace.quality.count("foreign_rows"), 1);
    assert_eq!(trace.quality.count("local_scope"), 6);
    assert_eq!(trace.quality.count("clock_skew"), 0);
    // Plays have no start of their own.
    let mut options = ReadOptions::default();
    options.sessions.set_rule("every(1s)").unwrap();
    let times = read_ok(text, &options).requests.arrival_us.unwrap();
    assert_eq!(times, [0, 5_000, 6_500, 100_000, 1_003_000, 1_013_000]);
}

#[test]
fn agentic_faults_are_named() {
    let row = |dependencies: &str| format!("{HEADER}{}", agentic("a", "p", "[1,2]", "7", dependencies));
    let lost = read_ok(row(&format!("[{}]", on("nobody", "5"))), &ReadOptions::default());
    assert_eq!(lost.requests.arrival_us, Some(vec![7_000]));
    assert_eq!(findings(&lost)[1], ("clock_skew", 1, Some(2), Some("nobody")));
    assert!(
        detail(&lost, "clock_skew")
            .starts_with("waits for requests that are not in their play, taken as over: 1")
    );
    let circle = read_ok(row(&format!("[{}]", on("a", "5"))), &ReadOptions::default());
    assert_eq!(circle.requests.arrival_us, Some(vec![7_000]));
    assert_eq!(findings(&circle)[1], ("clock_skew", 1, Some(2), Some("waits in a circle")));
    for (bad, code) in [
        ("[7]", "bad_type"),
        ("[{\"trigger\":\"dispatch\"}]", "missing_field"),
        ("[{\"request_id\":\"a\",\"delay_ms\":-1}]", "negative_value"),
        ("[{\"request_id\":\"a\",\"delay_ms\":\"x\"}]", "bad_type"),
    ] {
        let text = row(bad) + &agentic("z", "p", "[1,2]", "1", "[]");
        let trace = read_ok(text, &ReadOptions::default());
        assert_eq!((findings(&trace)[0].0, trace.len()), (code, 1), "{bad}");
    }
    let newer = row("[]").replace("\"version\":2", "\"version\":3");
    let trace = read_as("dynamo_agentic", &newer, &ReadOptions::default());
    assert_eq!(trace.quality.count("future_schema"), 1);
}
