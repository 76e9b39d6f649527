//! Chat turns of Qwen-Bailian and look-ups of `LMCache`.

use super::*;

fn chat(id: u32, parent: i32, time: &str, input: u32, ids: &str) -> String {
    format!(
        "{{\"chat_id\":{id},\"parent_chat_id\":{parent},\"timestamp\":{time},\"input_length\":{input},\"output_length\":3,\
         \"type\":\"text\",\"turn\":1,\"hash_ids\":{ids}}}\n"
    )
}

#[test]
fn bailian_turns() {
    // Whole seconds, which a reader that guesses would take for milliseconds. The last block of a turn is padded.
    let text = [chat(1, -1, "61", 20, "[1,2]"), chat(2, 1, "70", 40, "[1,3,4]"), chat(9, 8, "75", 5, "[7]")]
        .concat();
    let trace = read_as("bailian", &text, &ReadOptions::default());
    assert_eq!(trace.requests.arrival_us, Some(vec![61_000_000, 70_000_000, 75_000_000]));
    assert_eq!(numbers(&trace), [vec![1, 2], vec![1, 3, 4], vec![7]]);
    assert_eq!(column(&trace, "session"), [Some("1"), Some("1"), Some("9")]);
    assert_eq!(column(&trace, "request_id"), [Some("1"), Some("2"), Some("9")]);
    assert_eq!(column(&trace, "parent"), [Some("-1"), Some("1"), Some("8")]);
    assert_eq!(column(&trace, "type"), [Some("text"); 3]);
    assert_eq!(trace.block_tokens, 16);
    assert!(detail(&trace, "block_tokens_inferred").contains("padding"));
    assert_eq!(findings(&trace), [("cumulative_rows", 1, Some(2), Some("1"))]);
    assert_eq!(trace.quality.count("time_unit_inferred"), 0);
}

#[test]
fn bailian_like_rows_with_other_units() {
    let dates = chat(1, -1, "1732880000123", 20, "[1,2]") + &chat(2, 1, "1732880000200", 40, "[1,3,4]");
    let trace = read_as("bailian", &dates, &ReadOptions::default());
    assert_eq!(trace.requests.arrival_us, Some(vec![1_732_880_000_123_000, 1_732_880_000_200_000]));
    let mut options = ReadOptions::default();
    options.set_time_unit("ms").unwrap();
    let trace = read_ok(chat(1, -1, "61", 20, "[1,2]"), &options);
    assert_eq!(trace.requests.arrival_us, Some(vec![61_000]));
    // Lengths that rule 16 out decide.
    let trace =
        read_ok(chat(1, -1, "1", 128, "[1,2]") + &chat(2, 1, "2", 130, "[1,2,3]"), &ReadOptions::default());
    assert_eq!(trace.block_tokens, 64);
}

fn look_up(id: &str, time: &str, tokens: u32, chunks: &str) -> String {
    format!(
        "{{\"timestamp\":{time},\"request_id\":\"{id}\",\"model_name\":\"m\",\"chunk_size\":256,\"seq_len\":{tokens},\
         \"dtypes\":[\"bf16\"],\"shapes\":[[2,16]],\"chunk_hashes\":{chunks}}}\n"
    )
}

#[test]
fn lmcache_look_ups_count_once() {
    let text = [
        look_up("a", "1764400000.5", 600, "[\"0xab\", 5]"),
        look_up("b", "1764400001", 256, "[\"0xab\"]"),
        look_up("a", "1764400002", 800, "[\"0xab\", 5, 6]"),
    ]
    .concat();
    let trace = read_as("lmcache_lookup_log", &text, &ReadOptions::default());
    assert_eq!(paths(&trace), [vec![Id::Text("0xab"), Id::Number(5)], vec![Id::Text("0xab")]]);
    assert_eq!(trace.requests.arrival_us, Some(vec![1_764_400_000_500_000, 1_764_400_001_000_000]));
    assert_eq!((trace.requests.input_tokens.as_slice(), trace.block_tokens), (&[600, 256][..], 256));
    assert_eq!(column(&trace, "model"), [Some("m"), Some("m")]);
    assert_eq!(trace.forest.blocks(), 2);
    let want = [("text_blocks", 3, Some(1), None), ("foreign_rows", 1, Some(3), Some("a"))];
    assert_eq!(findings(&trace), want);
    assert_eq!(detail(&trace, "foreign_rows"), "requests that were listed before: 1");
    assert_eq!(trace.tail, crate::trace::Tail::Floor);
}

#[test]
fn the_earliest_look_up_holds_even_when_files_are_swapped() {
    let late = look_up("a", "2000000002", 512, "[1,3]") + &look_up("c", "2000000003", 256, "[9]");
    let early = look_up("a", "2000000001", 512, "[1,2]");
    let sources = vec![source("2", late), source("1", early)];
    let trace = read(sources, &ReadOptions::default(), &Progress::default()).unwrap();
    assert_eq!(numbers(&trace), [vec![1, 2], vec![9]]);
    assert_eq!(trace.quality.count("time_restart"), 0);
    // Rows without an id are requests of their own.
    let text = look_up("", "1", 256, "[1]") + &look_up("", "2", 256, "[1]");
    assert_eq!(read_ok(text, &ReadOptions::default()).len(), 2);
}
