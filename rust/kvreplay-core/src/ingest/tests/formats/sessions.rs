//! Session supersets of Mooncake rows: closed loops and deltas.

use super::*;

fn turn(session: &str, rest: &str, input: u32, output: u32, ids: &str) -> String {
    format!(
        "{{\"session_id\":\"{session}\"{rest},\"input_length\":{input},\"output_length\":{output},\"hash_ids\":{ids}}}\n"
    )
}

fn delta(block_tokens: u32) -> ReadOptions {
    let mut options = ReadOptions { block_tokens: Some(block_tokens), ..ReadOptions::default() };
    options.set_session_rows("delta").unwrap();
    options
}

#[test]
fn a_turn_arrives_its_delay_after_the_turn_before() {
    let text = [
        turn("a", ",\"timestamp\":100", 16, 1, "[1]"),
        turn("b", ",\"timestamp\":105,\"delay\":7", 16, 1, "[2]"),
        turn("a", ",\"delay\":5", 32, 1, "[1,3]"),
        turn("b", ",\"delay_ms\":2.5", 32, 1, "[2,4]"),
        turn("a", ",\"delay\":1", 48, 1, "[1,3,5]"),
    ]
    .concat();
    let trace = read_ok(text, &strict(sixteen()));
    assert_eq!(trace.requests.arrival_us, Some(vec![100_000, 105_000, 105_000, 106_000, 107_500]));
    assert_eq!(column(&trace, "session"), ["a", "b", "a", "a", "b"].map(Some));
    assert_eq!(trace.quality.count("time_missing"), 0);
}

#[test]
fn sessions_without_any_time_begin_as_the_caller_says() {
    let text = [
        turn("a", "", 16, 1, "[1]"),
        turn("b", "", 16, 1, "[2]"),
        turn("a", ",\"delay\":5", 32, 1, "[1,3]"),
        turn("b", ",\"delay\":2", 32, 1, "[2,4]"),
        turn("b", "", 32, 1, "[2,4]"),
    ]
    .concat();
    let trace = read_ok(text.as_str(), &sixteen());
    assert_eq!(trace.requests.arrival_us, Some(vec![0, 0, 2_000, 5_000]));
    // A later turn with neither a time nor a delay cannot be placed.
    assert_eq!(findings(&trace)[0], ("time_missing", 1, Some(5), Some("time")));
    assert!(detail(&trace, "time_unit_inferred").contains("sessions without a start of their own: 2"));
    let mut options = sixteen();
    options.sessions.set_rule("every(1s)").unwrap();
    let trace = read_ok(text, &options);
    assert_eq!(trace.requests.arrival_us, Some(vec![0, 5_000, 1_000_000, 1_002_000]));
}

#[test]
fn delays_that_are_none() {
    let good = turn("a", ",\"timestamp\":1", 16, 1, "[1]");
    for (bad, code, value) in [
        ("-1", "negative_value", "delay: -1"),
        ("\"x\"", "bad_type", "delay: \"x\""),
        ("[1]", "bad_type", "delay: [1]"),
        ("NaN", "not_finite", "delay: NaN"),
    ] {
        let text = format!("{good}{}", turn("a", &format!(",\"delay\":{bad}"), 16, 1, "[1]"));
        assert_eq!(findings(&read_ok(text, &sixteen())), [(code, 1, Some(2), Some(value))], "{bad}");
    }
    // Without a session nothing says after what.
    let text = "{\"timestamp\":1,\"input_length\":16,\"hash_ids\":[1]}\n{\"delay\":1,\"input_length\":16,\"hash_ids\":[1]}\n";
    assert_eq!(findings(&read_ok(text, &sixteen())), [("time_missing", 1, Some(2), Some("time"))]);
}

#[test]
fn deltas_get_their_history() {
    // Turns that fill their blocks keep their ids.
    let text = [
        turn("a", ",\"timestamp\":0", 8, 0, "[1,2]"),
        turn("b", ",\"timestamp\":1", 4, 0, "[1]"),
        turn("a", ",\"timestamp\":2", 4, 0, "[3]"),
        turn("b", ",\"timestamp\":3", 6, 0, "[2,9]"),
        turn("a", ",\"timestamp\":4", 0, 0, "[]"),
    ]
    .concat();
    let trace = read_ok(text.as_str(), &delta(4));
    assert_eq!(numbers(&trace), [vec![1, 2], vec![1], vec![1, 2, 3], vec![1, 2, 9], vec![1, 2, 3]]);
    assert_eq!(trace.requests.input_tokens, [8, 4, 12, 10, 12]);
    assert_eq!(trace.forest.blocks(), 4);
    assert!(trace.origin.chained);
    assert_eq!(trace.quality.count("delta_rows"), 0);
    // Block 2 stands below 1 in both, block 3 would not below 9: by design, also where reading is strict.
    let again = turn("c", ",\"timestamp\":5", 8, 0, "[9,3]");
    let trace = read_ok(text.clone() + &again, &strict(delta(4)));
    assert_eq!((trace.quality.count("id_with_two_parents"), trace.origin.chained), (2, false));
    // Read as whole prompts the same rows look wrong.
    let plain = read_ok(text, &ReadOptions { block_tokens: Some(4), ..ReadOptions::default() });
    assert_eq!((plain.quality.count("delta_rows"), plain.requests.input_tokens[2]), (1, 4));
}

#[test]
fn deltas_that_end_inside_a_block() {
    // 6 + 2 (output) + 6 tokens in blocks of 4: [1 whole] [2: 2 tokens, output 2] [3 whole] [4: 2 tokens].
    let text = turn("a", ",\"timestamp\":0", 6, 2, "[1,2]") + &turn("a", ",\"timestamp\":1", 6, 9, "[3,4]");
    let trace = read_ok(text.as_str(), &delta(4));
    let paths = numbers(&trace);
    assert_eq!((paths[0].as_slice(), paths[1].len()), (&[1, 2][..], 4));
    assert_eq!((paths[1][0], &paths[1][2..]), (1, &[3, 4][..]));
    assert!(paths[1][1] > 4, "block 2 with output behind it is another block");
    assert_eq!(trace.requests.input_tokens, [6, 14]);
    // The same turns in another session: the inputs are equal, the outputs need not be.
    let other = text.replace("\"a\"", "\"b\"").replace("timestamp\":", "timestamp\":1");
    let two = text + &other;
    let trace = read_ok(two, &delta(4));
    let paths = numbers(&trace);
    assert_eq!(trace.len(), 4);
    // In order of time: a's turns at 0 and 1, b's at 10 and 11.
    assert_eq!(paths[0], paths[2]);
    assert_eq!(paths[1][0], paths[3][0]);
    assert_ne!(paths[1][1], paths[3][1]);
    assert_eq!(trace.forest.blocks(), 2 + 3 + 3);
}

#[test]
fn deltas_of_dynamo_add_outputs_to_the_history() {
    // Dynamo's own test: 4 in, 2 out, 2 in makes a prompt of 8.
    let text = turn("s", ",\"timestamp\":0", 4, 2, "[1]") + &turn("s", ",\"delay\":5", 2, 1, "[2]");
    let trace = read_ok(text, &delta(4));
    assert_eq!(trace.requests.input_tokens, [4, 8]);
    assert_eq!((numbers(&trace)[1][0], numbers(&trace)[1].len()), (1, 2));
    assert_eq!(trace.requests.arrival_us, Some(vec![0, 5_000]));
    let Some(folder) = shared("traces/small/dynamo") else { return };
    let trace = read_ok(file_bytes(&folder.join("mooncake-delta.jsonl")), &delta(16));
    assert_eq!(trace.requests.input_tokens, [16, 28]);
    assert_eq!((numbers(&trace)[1][0], numbers(&trace)[1].len()), (201, 2));
}

#[test]
fn rows_that_were_cumulative_after_all_are_named() {
    let text =
        turn("a", ",\"timestamp\":0", 8, 0, "[1,2]") + &turn("a", ",\"timestamp\":1", 12, 0, "[1,2,3]");
    let trace = read_ok(text.as_str(), &delta(4));
    assert_eq!((trace.quality.count("cumulative_rows"), trace.requests.input_tokens[1]), (1, 20));
    assert!(detail(&trace, "cumulative_rows").contains("repeat the turn before"));
    // A history without end is refused.
    let text =
        turn("a", ",\"timestamp\":0", 4, 4_000_000_000, "[1]") + &turn("a", ",\"timestamp\":1", 4, 0, "[2]");
    let error = read_err(text, &delta(16));
    assert_eq!((error.code, error.line), ("row_too_long", Some(2)));
}

#[test]
fn deltas_in_floor_traces_and_in_several_namespaces() {
    let mut options = delta(4);
    options.set_tail("floor").unwrap();
    let text = turn("a", ",\"timestamp\":0", 6, 0, "[1]") + &turn("a", ",\"timestamp\":1", 6, 0, "[2]");
    let trace = read_ok(text, &options);
    let paths = numbers(&trace);
    assert_eq!((trace.requests.input_tokens.as_slice(), paths[0].as_slice()), (&[6, 12][..], &[1][..]));
    assert_eq!((paths[1].len(), paths[1][0]), (3, 1));
    // A session that changes its model starts over there; rows of no session stand alone.
    let text = [
        turn("a", ",\"timestamp\":0,\"model\":\"m\"", 4, 0, "[1]"),
        turn("a", ",\"timestamp\":1,\"model\":\"n\"", 4, 0, "[2]"),
        turn("a", ",\"timestamp\":2,\"model\":\"m\"", 4, 0, "[3]"),
        "{\"timestamp\":3,\"input_length\":4,\"hash_ids\":[7],\"model\":\"m\"}\n".to_owned(),
        "{\"timestamp\":4,\"input_length\":4,\"hash_ids\":[\"x\"],\"model\":\"m\"}\n".to_owned(),
    ]
    .concat();
    let trace = read_ok(text, &delta(4));
    let got = super::super::paths(&trace);
    let number = Id::Number;
    assert_eq!(
        got,
        [vec![number(1)], vec![number(2)], vec![number(1), number(3)], vec![number(7)], vec![Id::Text("x")]]
    );
    assert_eq!(trace.requests.input_tokens, [4, 4, 8, 4, 4]);
}
