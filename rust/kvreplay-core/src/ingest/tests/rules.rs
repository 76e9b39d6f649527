//! One test per rule of `interface.md` section 4, with exact contents.

use super::*;
use crate::trace::NO_LENGTH;

/// A row with the given rest behind the usual time and length.
fn lines(rows: &[&str]) -> String {
    rows.join("\n") + "\n"
}

fn row(time: &str, input: u32, ids: &str) -> String {
    format!("{{\"timestamp\":{time},\"input_length\":{input},\"output_length\":1,\"hash_ids\":{ids}}}\n")
}

#[test]
fn keys_in_any_order_aliases_and_values_to_skip() {
    let text = lines(&[
        r#"{"hash_ids":[1,2],"output_length":5,"input_length":32,"timestamp":1}"#,
        r#" { "x" : {"a":[1,{"b":null}]}, "created_time":2 , "input_tokens" :20, "hash_ids" : [ 1 , 3 ] , "y":[[]] } "#,
        r#"{"hash\u005fids":["1","\u0034"],"arrival":3,"prompt_tokens":"17","completion_tokens":2.0,"z":"\ud83d\ude00"}"#,
    ]);
    let trace = read_ok(text, &strict(sixteen()));
    assert_eq!(numbers(&trace), [[1, 2], [1, 3], [1, 4]]);
    assert_eq!(trace.requests.input_tokens, [32, 20, 17]);
    assert_eq!(trace.requests.output_tokens, [5, NO_LENGTH, 2]);
    assert_eq!(trace.requests.arrival_us, Some(vec![1_000, 2_000, 3_000]));
    assert_eq!(column(&trace, "z"), [None, None, Some("😀")]);
    assert!(findings(&trace).is_empty());
}

#[test]
fn the_first_alias_of_a_field_holds() {
    let text = lines(&[
        r#"{"ts":9,"timestamp":1,"input_tokens":99,"input_length":16,"hash_ids":[1],"block_hashes":[7]}"#,
    ]);
    let trace = read_ok(text, &strict(sixteen()));
    assert_eq!(trace.requests.arrival_us, Some(vec![1_000]));
    assert_eq!((numbers(&trace), trace.requests.input_tokens.clone()), (vec![vec![1]], vec![16]));
}

#[test]
fn a_worse_name_leaves_nothing_behind() {
    // Both orders: the name that does not hold may have a value of no use.
    for text in [
        r#"{"block_tokens":"x","block_size":16,"input_tokens":"y","input_length":32,"hash_ids":[1,2]}"#,
        r#"{"block_size":16,"block_tokens":"x","input_length":32,"input_tokens":"y","hash_ids":[1,2]}"#,
        "input_tokens,input_length,hash_ids\ny,32,1 2\n",
        "input_length,input_tokens,hash_ids\n32,y,1 2\n",
    ] {
        let trace = read_ok(text, &strict(sixteen()));
        assert_eq!(
            (trace.requests.input_tokens.clone(), numbers(&trace)),
            (vec![32], vec![vec![1, 2]]),
            "{text}"
        );
    }
}

#[test]
fn tokens_of_every_block_are_the_input() {
    let behind = r#"{"block_size":16,"hash_ids":[1,2],"block_tokens":[16,4]}"#;
    let before = r#"{"block_tokens":[16,4],"block_size":16,"hash_ids":[1,2]}"#;
    for text in [behind, before] {
        let trace = read_ok(text, &strict(ReadOptions::default()));
        assert_eq!((trace.requests.input_tokens[0], trace.block_tokens), (20, 16));
    }
    let list = |weights: &str| format!("{{\"hash_ids\":[1,2],\"block_tokens\":{weights}}}\n");
    let trace = read_ok(list("[16,4]") + &list("[16,16]"), &strict(sixteen()));
    assert_eq!(trace.requests.input_tokens, [20, 32]);
    let trace = read_ok(list("[16,-4]") + &list("[16, 1]") + &list("[1.5]"), &sixteen());
    assert_eq!(trace.requests.input_tokens, [17]);
    assert_eq!(findings(&trace), [("bad_type", 2, Some(1), Some("block_tokens: [16,-4]"))]);
}

#[test]
fn columns_replace_the_names_of_a_format() {
    let text = lines(&[r#"{"timestamp":1,"when_s":2.5,"n":16,"input_length":99,"total":["a"],"who":"x"}"#]);
    let pairs = [("time", "when_s"), ("input_tokens", "n"), ("hash_ids", "total"), ("tenant", "who")];
    let columns = pairs.iter().map(|&(ours, theirs)| (ours.to_owned(), theirs.to_owned())).collect();
    let trace = read_ok(text, &strict(ReadOptions { columns, ..sixteen() }));
    assert_eq!(trace.requests.arrival_us, Some(vec![2_500_000]));
    assert_eq!(trace.requests.input_tokens, [16]);
    assert_eq!(paths(&trace), [[Id::Text("a")]]);
    assert_eq!(column(&trace, "tenant"), [Some("x")]);
    let columns = vec![("tenant".to_owned(), "whom".to_owned())];
    let error = read_err(row("0", 16, "[1],\"who\":\"x\""), &ReadOptions { columns, ..sixteen() });
    assert_eq!(error.message, "no row has a field whom, which columns gives as tenant");
    for (pairs, part) in [
        (vec![("nothing", "n")], "there is no field nothing"),
        (vec![("time", "a"), ("time", "b")], "given twice"),
    ] {
        let columns = pairs.iter().map(|&(ours, theirs)| (ours.to_owned(), theirs.to_owned())).collect();
        let error = try_read("", &ReadOptions { columns, ..sixteen() }).unwrap_err();
        assert!(matches!(&error, Error::Config { message, .. } if message.contains(part)), "{error:?}");
    }
}

#[test]
fn bad_rows_are_rejected_and_named() {
    let good = row("0", 16, "[1]");
    for (bad, code, value) in [
        ("{\"timestamp\":1,}", "json_syntax", "{\"timestamp\":1,}"),
        ("{\"timestamp\":1", "json_syntax", "{\"timestamp\":1"),
        ("{\"timestamp\":01}", "json_syntax", "{\"timestamp\":01}"),
        ("{} {}", "json_syntax", "{} {}"),
        ("[1]", "not_an_object", "[1]"),
        ("{\"timestamp\":1,\"input_length\":16}", "missing_field", "hash_ids"),
        ("{\"timestamp\":1,\"input_length\":16,\"hash_ids\":null}", "missing_field", "hash_ids"),
        ("{\"timestamp\":1,\"input_length\":16,\"hash_ids\":7}", "bad_type", "hash_ids: 7"),
        ("{\"timestamp\":1,\"input_length\":16,\"hash_ids\":[1,null]}", "bad_type", "hash_ids: null"),
        ("{\"timestamp\":1,\"input_length\":16,\"hash_ids\":[[1]]}", "bad_type", "hash_ids: [1]"),
        ("{\"timestamp\":1,\"input_length\":\"x\",\"hash_ids\":[1]}", "bad_type", "input_tokens: \"x\""),
        ("{\"timestamp\":1,\"input_length\":1.5,\"hash_ids\":[1]}", "bad_type", "input_tokens: 1.5"),
        (
            "{\"timestamp\":1,\"input_length\":4294967295,\"hash_ids\":[1]}",
            "bad_type",
            "input_tokens: 4294967295",
        ),
        ("{\"timestamp\":true,\"input_length\":16,\"hash_ids\":[1]}", "bad_type", "time: true"),
        ("{\"timestamp\":\"soon\",\"input_length\":16,\"hash_ids\":[1]}", "bad_type", "time: \"soon\""),
        ("{\"timestamp\":NaN,\"input_length\":16,\"hash_ids\":[1]}", "not_finite", "time: NaN"),
        (
            "{\"timestamp\":1,\"input_length\":-Infinity,\"hash_ids\":[1]}",
            "not_finite",
            "input_tokens: -Infinity",
        ),
        ("{\"timestamp\":1,\"output_length\":-1,\"hash_ids\":[1]}", "negative_value", "output_tokens: -1"),
        ("{\"timestamp\":1,\"input_length\":-0.5,\"hash_ids\":[1]}", "negative_value", "input_tokens: -0.5"),
        (
            "{\"timestamp\":1,\"input_length\":16,\"hash_ids\":[18446744073709551616]}",
            "id_out_of_range",
            "hash_ids: 18446744073709551616",
        ),
        (
            "{\"timestamp\":1,\"input_length\":16,\"hash_ids\":[-9223372036854775809]}",
            "id_out_of_range",
            "hash_ids: -9223372036854775809",
        ),
        ("{\"timestamp\":1,\"input_length\":16,\"hash_ids\":[1.5]}", "id_not_integer", "hash_ids: 1.5"),
        (
            "{\"timestamp\":1,\"input_length\":16,\"hash_ids\":[9007199254740992.0]}",
            "ids_look_rounded",
            "hash_ids: 9007199254740992.0",
        ),
        ("{\"timestamp\":1,\"input_length\":16,\"hash_ids\":[1e300]}", "ids_look_rounded", "hash_ids: 1e300"),
        (
            "{\"timestamp\":1,\"input_length\":16,\"block_size\":0,\"hash_ids\":[1]}",
            "bad_type",
            "block_tokens: 0",
        ),
    ] {
        let text = format!("{good}{bad}\n{good}");
        let trace = read_ok(text.as_str(), &sixteen());
        let want = [(code, 1, Some(2), Some(value)), ("time_ties", 1, Some(3), Some("0 us"))];
        assert_eq!(findings(&trace), want, "{bad}");
        assert_eq!((trace.len(), trace.origin.rejected_rows), (2, 1), "{bad}");
        let error = read_err(text, &strict(sixteen()));
        assert_eq!((error.code, error.line, error.file.as_str()), (code, Some(2), "t"), "{bad}");
    }
}

#[test]
fn text_that_is_not_utf8() {
    let mut text = row("0", 16, "[1]").into_bytes();
    text.extend_from_slice(b"{\"timestamp\":1,\"hash_ids\":[1],\"who\":\"\xff\"}\n");
    let trace = read_ok(text, &sixteen());
    assert_eq!(findings(&trace)[0].0, "invalid_utf8");
}

#[test]
fn a_repeated_key_keeps_its_last_value() {
    let text = row("0,\"timestamp\":\"x\",\"timestamp\":7", 32, "[9],\"hash_ids\":[1,2]");
    let trace = read_ok(text.as_str(), &sixteen());
    assert_eq!(findings(&trace), [("duplicate_key", 1, Some(1), Some("timestamp"))]);
    assert_eq!((numbers(&trace), trace.requests.arrival_us.clone()), (vec![vec![1, 2]], Some(vec![7_000])));
    // The last value is bad: so is the row.
    let trace = read_ok(row("0", 16, "[1]") + &row("0", 16, "[1],\"hash_ids\":[null]"), &sixteen());
    assert_eq!(trace.len(), 1);
    assert_eq!(read_err(text, &strict(sixteen())).code, "duplicate_key");
}

#[test]
fn ids_of_every_kind() {
    let text = [
        row("0", 64, "[0,18446744073709551615,-1,-9223372036854775808]"),
        row("1", 64, "[\"0\",\"-1\",\"18446744073709551615\",\"9223372036854775808\"]"),
        row("2", 64, "[1.0,2e0,20e-1,-0]"),
        row("3", 64, "[\"007\",\"0x7\",\"7 \",\"sha256:7\"]"),
        row("4", 64, "\"[7, \\\"a\\\"]\""),
        row("5", 64, "\"7, b\""),
        row("6", 64, "\"8\""),
    ];
    let trace = read_ok(text.concat(), &sixteen());
    let (number, text) = (Id::Number, Id::Text);
    let max = u64::MAX;
    assert_eq!(
        paths(&trace),
        [
            vec![number(0), number(max), number(max), number(1 << 63)],
            vec![number(0), number(max), number(max), number(1 << 63)],
            vec![number(1), number(2), number(2), number(0)],
            vec![text("007"), text("0x7"), text("7 "), text("sha256:7")],
            vec![number(7), text("a")],
            vec![number(7), text("b")],
            vec![number(8)],
        ]
    );
    assert_eq!(trace.quality.count("text_blocks"), 3);
}

#[test]
fn runs_of_consecutive_ids() {
    let text = lines(&[
        r#"{"timestamp":0,"input_length":80,"run_start":[5,100],"run_length":[3,2]}"#,
        r#"{"timestamp":1,"input_length":80,"run_start":[],"run_length":[]}"#,
        r#"{"timestamp":2,"input_length":80,"run_start":[1],"run_length":[1,2]}"#,
        r#"{"timestamp":3,"input_length":80,"run_start":[18446744073709551615],"run_length":[2]}"#,
        r#"{"timestamp":4,"input_length":80,"run_start":[1],"run_length":[4000000000000000000]}"#,
    ]);
    let trace = read_ok(text, &sixteen());
    assert_eq!(numbers(&trace), [vec![5, 6, 7, 100, 101], vec![]]);
    assert_eq!(findings(&trace)[0], ("bad_type", 3, Some(3), Some("run_length: 1 starts, 2 lengths")));
}

#[test]
fn lengths_that_do_not_fit() {
    let text =
        [row("0", 33, "[1,2,3]"), row("1", 20, "[1,2,3,4]"), row("2", 90, "[1,2]"), row("3", 0, "[1]")]
            .concat();
    let trace = read_ok(text.as_str(), &sixteen());
    assert_eq!(numbers(&trace), [vec![1, 2, 3], vec![1, 2], vec![1, 2], vec![]]);
    // Block 4 was only listed behind the end of a prompt: it is gone.
    assert_eq!(trace.forest.blocks(), 3);
    assert_eq!(findings(&trace), [("length_mismatch", 3, Some(2), Some("4 ids, 20 tokens of 16 a block"))]);
    assert_eq!(read_err(text, &strict(sixteen())).line, Some(2));
    // A short path changes nothing, so that strict reading goes on.
    assert_eq!(read_ok(row("0", 90, "[1,2]"), &strict(sixteen())).len(), 1);
    let text = lines(&[
        r#"{"timestamp":0,"hash_ids":[1,2]}"#,
        r#"{"timestamp":1,"input_length":null,"hash_ids":[]}"#,
    ]);
    let trace = read_ok(text.as_str(), &sixteen());
    assert_eq!(trace.requests.input_tokens, [32, 0]);
    let want =
        [("empty_path", 1, Some(2), Some("0 tokens")), ("length_inferred", 2, Some(1), Some("input_tokens"))];
    assert_eq!(findings(&trace), want);
    assert_eq!(read_err(text, &strict(sixteen())).code, "length_inferred");
}

#[test]
fn block_sizes_inferred_given_and_refused() {
    let text = [row("0", 100, "[1,2]"), row("1", 200, "[1,3,4,5]"), row("2", 129, "[1,3,6]")].concat();
    let auto = ReadOptions::default();
    let trace = read_ok(text.as_str(), &auto);
    assert_eq!((trace.block_tokens, trace.tail.name()), (64, "ceil"));
    // Few rows may be odd; many that agree with each other and not with the caller are not.
    let given = ReadOptions { block_tokens: Some(512), ..auto.clone() };
    assert_eq!(read_ok(text.as_str(), &given).quality.count("length_mismatch"), 3);
    let text = text.repeat(3);
    for given in [16, 512] {
        let error = read_err(text.as_str(), &ReadOptions { block_tokens: Some(given), ..auto.clone() });
        assert_eq!(
            (error.code, error.hint.contains("64 tokens fit every row")),
            ("length_mismatch", true),
            "{given}"
        );
    }
    assert!(matches!(
        try_read(text.as_str(), &ReadOptions { block_tokens: Some(0), ..auto.clone() }),
        Err(Error::Config { .. })
    ));
    let error = read_err(row("0", 100, "[1,2]") + &row("0", 5, "[1,2,3,4]") + &row("0", 999, "[1]"), &auto);
    assert_eq!((error.code, error.hint.contains("block_tokens")), ("length_mismatch", true));
    // No lengths at all.
    let error = read_err("{\"hash_ids\":[1]}\n", &auto);
    assert!(error.message.contains("block size is not stated"), "{error:?}");
    assert_eq!(read_ok("{\"input_length\":5,\"hash_ids\":[]}\n", &auto).block_tokens, 16);
}

#[test]
fn block_sizes_that_rows_state() {
    let sized =
        |time: &str, size: u32, ids: &str| row(time, size * 2, &format!("{ids},\"block_size\":{size}"));
    let text = [sized("0", 16, "[1,2]"), sized("1", 64, "[1,2]"), sized("2", 64, "[1,3]")].concat();
    let trace = read_ok(text.as_str(), &ReadOptions::default());
    assert_eq!((trace.block_tokens, trace.requests.block_tokens.as_slice()), (64, &[16, 64, 64][..]));
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces), (5, 2));
    assert_eq!(trace.origin.namespace_columns, ["block_tokens"]);
    assert_eq!(findings(&trace), [("mixed_block_tokens", 2, Some(2), Some("64"))]);
    let same = read_ok(sized("0", 32, "[1,2]"), &ReadOptions::default());
    assert_eq!(
        (same.block_tokens, same.requests.block_tokens.len(), same.quality.count("block_tokens_inferred")),
        (32, 0, 0)
    );
    let error = read_err(text, &sixteen());
    assert_eq!((error.code, error.line), ("mixed_block_tokens", Some(2)));
}

#[test]
fn the_tail_is_detected_and_can_be_given() {
    let floor = [row("0", 33, "[1,2]"), row("1", 40, "[1,3]"), row("2", 48, "[1,3,4]")].concat();
    let trace = read_ok(floor.as_str(), &sixteen());
    assert_eq!((trace.tail.name(), findings(&trace).len()), ("floor", 0));
    let mut options = sixteen();
    options.set_tail("ceil").unwrap();
    let trace = read_ok(floor, &options);
    assert_eq!((trace.tail.name(), trace.quality.count("length_mismatch")), ("ceil", 2));
    assert!(options.set_tail("middle").is_err());
}

#[test]
fn units_of_time() {
    let read_times = |values: &[&str]| {
        let rows: String = values.iter().map(|value| row(value, 16, "[1]")).collect();
        read_ok(rows, &sixteen()).requests.arrival_us.unwrap()
    };
    assert_eq!(read_times(&["0", "1500"]), [0, 1_500_000]);
    assert_eq!(read_times(&["0", "1.5"]), [0, 1_500_000]);
    assert_eq!(read_times(&["-1.25", "0.0000005"]), [-1_250_000, 1]);
    assert_eq!(read_times(&["1732880000", "1732880001"]), [1_732_880_000_000_000, 1_732_880_001_000_000]);
    assert_eq!(read_times(&["1732880000.25"]), [1_732_880_000_250_000]);
    assert_eq!(read_times(&["1732880000123"]), [1_732_880_000_123_000]);
    assert_eq!(read_times(&["1732880000123456"]), [1_732_880_000_123_456]);
    assert_eq!(read_times(&["1732880000123456789"]), [1_732_880_000_123_457]);
    assert_eq!(read_times(&["\"12\"", "\"13.0\""]), [12_000, 13_000]);
    let named = "{\"arrival_time_ns\":1500,\"hash_ids\":[1],\"input_length\":16}\n";
    assert_eq!(read_ok(named, &sixteen()).requests.arrival_us, Some(vec![2]));
    let mut options = sixteen();
    options.set_time_unit("s").unwrap();
    assert_eq!(read_ok(row("7", 16, "[1]"), &options).requests.arrival_us, Some(vec![7_000_000]));
    assert_eq!(read_ok(row("7", 16, "[1]"), &options).quality.count("time_unit_inferred"), 0);
    assert_eq!(read_err(row("9223372036854775807", 16, "[1]"), &options).code, "bad_type");
}

#[test]
fn mixed_units_are_refused() {
    for (values, line) in [
        (["1732880000", "1732880000500", "1732880001"], 2),
        (["1", "\"2024-11-29T11:33:21Z\"", "2"], 2),
        (["0", "5", "1732880000500"], 3),
        (["\"2024-11-29\"", "\"2024-11-30\"", "7"], 3),
    ] {
        let text: String = values.iter().map(|value| row(value, 16, "[1]")).collect();
        for options in [sixteen(), strict(sixteen())] {
            let error = read_err(text.as_str(), &options);
            assert_eq!((error.code, error.line), ("mixed_time_units", Some(line)), "{values:?}");
        }
    }
}

#[test]
fn a_trace_without_times() {
    let text = lines(&[r#"{"input_length":16,"hash_ids":[2]}"#, r#"{"input_length":16,"hash_ids":[1]}"#]);
    let trace = read_ok(text, &strict(sixteen()));
    assert_eq!((trace.requests.arrival_us.clone(), numbers(&trace)), (None, vec![vec![2], vec![1]]));
}

#[test]
fn a_missing_time_in_a_trace_with_times() {
    let text =
        [row("null", 16, "[7]"), row("5", 16, "[1],\"tenant\":\"a\""), row("null", 16, "[8]")].concat();
    let trace = read_ok(text.as_str(), &sixteen());
    assert_eq!(findings(&trace), [("time_missing", 2, Some(1), Some("time"))]);
    assert_eq!((trace.origin.rejected_rows, trace.forest.blocks(), numbers(&trace)), (2, 1, vec![vec![1]]));
    assert_eq!(column(&trace, "tenant"), [Some("a")]);
    assert_eq!(read_err(text, &strict(sixteen())).line, Some(1));
}

#[test]
fn strict_names_the_first_row_whatever_is_wrong_with_it() {
    // Line 3 stops the reading, line 2 shows only when the rest is looked at.
    let text = [row("0", 16, "[1]"), row("1", 16, "[1,2]"), row("2", 16, "null")].concat();
    let error = read_err(text, &strict(sixteen()));
    assert_eq!((error.code, error.line), ("length_mismatch", Some(2)));
    let text = [row("1", 16, "[1]"), row("null", 16, "[1]"), row("2", 16, "[1,2]")].concat();
    assert_eq!(read_err(text, &strict(sixteen())).code, "time_missing");
}

#[test]
fn rows_are_sorted_by_time_and_blocks_numbered_in_that_order() {
    let text =
        [row("5", 16, "[9],\"turn\":1"), row("1", 32, "[1,2],\"turn\":2"), row("5", 16, "[1],\"turn\":3")]
            .concat();
    let trace = read_ok(text, &strict(sixteen()));
    assert_eq!(numbers(&trace), [vec![1, 2], vec![9], vec![1]]);
    assert_eq!(trace.requests.arrival_us, Some(vec![1_000, 5_000, 5_000]));
    assert_eq!(trace.requests.input_tokens, [32, 16, 16]);
    assert_eq!(column(&trace, "turn"), [Some("2"), Some("1"), Some("3")]);
    assert_eq!(trace.ids.get(0), Id::Number(1));
    let want =
        [("out_of_order", 1, Some(2), Some("4000 us early")), ("time_ties", 1, Some(3), Some("5000 us"))];
    assert_eq!(findings(&trace), want);
}

#[test]
fn a_clock_that_starts_again() {
    let half = [row("0", 16, "[1]"), row("7", 16, "[2]"), row("9", 16, "[3]")].concat();
    let trace =
        read(vec![source("a", half.as_str()), source("b", half.as_str())], &sixteen(), &Progress::default())
            .unwrap();
    assert_eq!(trace.requests.arrival_us, Some(vec![0, 7_000, 9_000, 9_000, 16_000, 18_000]));
    assert_eq!(findings(&trace)[1], ("time_restart", 1, Some(1), Some("time falls by 9000 us")));
    let sources = vec![source("a", half.as_str()), source("b", half)];
    let error = trace_error(read(sources, &strict(sixteen()), &Progress::default()));
    assert_eq!((error.code, error.file.as_str(), error.line), ("time_restart", "b", Some(1)));
}

#[test]
fn ids_below_two_parents_are_rekeyed() {
    let text = [row("0", 32, "[1,2]"), row("1", 32, "[3,2]"), row("2", 48, "[4,5,4]")].concat();
    let trace = read_ok(text.as_str(), &sixteen());
    assert_eq!((trace.forest.blocks(), trace.origin.chained), (7, false));
    let want =
        [("duplicate_id_in_request", 1, Some(3), None), ("id_with_two_parents", 2, Some(2), Some("2"))];
    assert_eq!(findings(&trace), want);
    let error = read_err(text, &strict(sixteen()));
    assert_eq!((error.code, error.line), ("id_with_two_parents", Some(2)));
}

#[test]
fn namespaces_of_models_adapters_salts() {
    let row = |time: u32, rest: &str| row(&time.to_string(), 16, &format!("[1]{rest}"));
    let text = [
        row(0, ",\"model\":\"m\",\"tenant\":\"t\""),
        row(1, ",\"model\":\"m\",\"tenant\":\"u\""),
        row(2, ",\"model\":\"m\",\"lora\":\"x\""),
        row(3, ",\"model\":\"m\",\"cache_salt\":\"x\""),
        row(4, ",\"model\":\"m\",\"lora\":\"\",\"cache_salt\":null"),
    ]
    .concat();
    let trace = read_ok(text.as_str(), &strict(sixteen()));
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces), (3, 3));
    assert_eq!(trace.origin.namespace_columns, ["lora", "salt"]);
    assert_eq!(findings(&trace), [("mixed_namespaces", 2, Some(3), Some("lora: x"))]);
    let with = |namespace| read_ok(text.as_str(), &ReadOptions { namespace, ..sixteen() }).forest.blocks();
    assert_eq!(with(Namespace::None), 1);
    assert_eq!(with(Namespace::Columns(vec!["tenant".to_owned()])), 3);
    assert_eq!(with(Namespace::Columns(vec!["cache_salt".to_owned(), "tenant".to_owned()])), 4);
    let namespace = Namespace::Columns(vec!["tenants".to_owned()]);
    let error = try_read(text.as_str(), &ReadOptions { namespace, ..sixteen() }).unwrap_err();
    assert!(
        matches!(error, Error::Config { message, .. } if message == "namespace: no row has a value of tenants")
    );
    let namespace = Namespace::Columns(vec!["hash_ids".to_owned()]);
    assert!(matches!(try_read(text, &ReadOptions { namespace, ..sixteen() }), Err(Error::Config { .. })));
}

#[test]
fn local_scopes() {
    let row = |time: u32, rest: &str| row(&time.to_string(), 16, &format!("[1]{rest}"));
    let local = ",\"hash_id_scope\":\"local\"";
    let text = [
        row(0, &format!("{local},\"trace_id\":\"a\"")),
        row(1, &format!("{local},\"session_id\":\"a\"")),
        row(2, local),
        row(3, ",\"hash_id_scope\":\"global\",\"trace_id\":\"a\""),
        row(4, ""),
    ]
    .concat();
    let blocks = |scope| {
        let trace = read_ok(text.as_str(), &ReadOptions { scope, ..sixteen() });
        (trace.forest.blocks(), trace.quality.count("local_scope"))
    };
    assert_eq!(blocks(Scope::Auto), (4, 3));
    assert_eq!(blocks(Scope::Global), (1, 0));
    assert_eq!(blocks(Scope::Local), (3, 5));
    let sources = vec![source("a", row(0, local)), source("b", row(1, local))];
    assert_eq!(read(sources, &sixteen(), &Progress::default()).unwrap().forest.blocks(), 2);
}

#[test]
fn columns_of_the_files_own_are_kept_while_they_are_few() {
    let many: Vec<String> = (0..20).map(|n| format!(",\"extra{n:02}\":{n}")).collect();
    let many = many.concat();
    let text = row("0", 16, &format!("[1],\"status\":\"ok\",\"list\":[1],\"none\":null,\"yes\":true{many}"));
    let trace = read_ok(text, &strict(sixteen()));
    let names: Vec<&str> = trace.requests.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), MAX_FOREIGN_COLUMNS);
    assert_eq!(names[..3], ["extra00", "extra01", "extra02"]);
    assert_eq!(names[14..], ["status", "yes"]);
    assert_eq!((column(&trace, "yes"), column(&trace, "extra13")), (vec![Some("true")], vec![Some("13")]));
}

#[test]
fn duplicate_requests() {
    let id = |time: u32, id: &str, rest: &str| {
        row(&time.to_string(), 16, &format!("[1],\"request_id\":{id}{rest}"))
    };
    let text = [
        id(0, "\"a\"", ",\"status\":1"),
        id(0, "\"a\"", ",\"status\":2"),
        id(0, "\"a\"", ",\"status\":1"),
        id(1, "\"a\"", ",\"status\":1"),
        id(1, "null", ""),
        id(1, "null", ""),
    ];
    let trace = read_ok(text.concat(), &strict(sixteen()));
    assert_eq!(trace.quality.count("duplicate_request"), 1);
    assert_eq!(findings(&trace)[0], ("duplicate_request", 1, Some(3), Some("a")));
    assert_eq!(trace.len(), 6);
}

#[test]
fn turns_of_sessions() {
    let turn = |time: u32, session: &str, input: u32, ids: &str| {
        row(&time.to_string(), input, &format!("{ids},\"session_id\":\"{session}\""))
    };
    let whole =
        [turn(0, "a", 40, "[1,2,3]"), turn(1, "a", 70, "[1,2,4,5,6]"), turn(2, "a", 20, "[1,9]")].concat();
    let trace = read_ok(whole, &strict(sixteen()));
    assert_eq!(
        findings(&trace),
        [("cumulative_rows", 1, Some(2), Some("a")), ("session_reset", 1, Some(3), Some("a"))]
    );
    let delta = [turn(0, "a", 32, "[1,2]"), turn(1, "a", 16, "[3]"), turn(2, "a", 16, "[4]")].concat();
    let trace = read_ok(delta, &strict(sixteen()));
    assert_eq!(findings(&trace)[0].0, "delta_rows");
}

#[test]
fn turns_before_the_turn_they_follow() {
    let text = lines(&[
        r#"{"timestamp":5,"chat_id":1,"parent_chat_id":-1,"input_length":16,"hash_ids":[1]}"#,
        r#"{"timestamp":4,"chat_id":2,"parent_chat_id":1,"input_length":32,"hash_ids":[1,2]}"#,
    ]);
    let trace = read_ok(text, &sixteen());
    assert_eq!(trace.quality.count("clock_skew"), 1);
    assert_eq!(column(&trace, "request_id"), [Some("2"), Some("1")]);
    assert_eq!(column(&trace, "session"), [Some("1"), Some("1")]);
    assert_eq!(column(&trace, "parent"), [Some("1"), Some("-1")]);
}

#[test]
fn what_is_written_reads_back_equal() {
    let text = [
        row("0", 40, "[1,18446744073709551615,3],\"model\":\"m\\\"1\\\\\",\"session\":\"s\\u0001\""),
        row("1.0005", 40, "[1,\"x\\n\",4],\"tenant\":\"é\""),
        row("2", 0, "[]"),
    ]
    .concat();
    for (options, finer) in [(sixteen(), true), (ReadOptions { scope: Scope::Local, ..sixteen() }, true)] {
        let trace = read_ok(text.as_str(), &options);
        let mut out = Vec::new();
        write_mooncake(&trace, &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out).contains("timestamp_us"), finer);
        let again = read_ok(out.as_slice(), &sixteen());
        assert_eq!(numbers_or_texts(&again), numbers_or_texts(&trace));
        assert_eq!(again.requests.arrival_us, trace.requests.arrival_us);
        assert_eq!(again.forest, trace.forest);
        if options.scope == Scope::Auto {
            assert_eq!(again.sha256(), trace.sha256());
        }
    }
    let error = write_mooncake(&read_ok(text, &sixteen()), &mut [0_u8; 10].as_mut_slice()).unwrap_err();
    assert!(matches!(error, Error::Trace(e) if e.code == "io"));
}

fn numbers_or_texts(trace: &Trace) -> Vec<String> {
    paths(trace).iter().map(|path| format!("{path:?}")).collect()
}

#[test]
fn headers_and_events_are_no_requests() {
    let header = r#"{"schema":"dynamo.agentic_mooncake","version":2,"block_size":4,"hash_id_scope":"local"}"#;
    let text = lines(&[
        header,
        r#"{"request_id":"a","play_id":"p","input_length":8,"hash_ids":[1,2],"not_before_ms":0}"#,
        r#"{"request_id":"b","play_id":"q","input_length":8,"hash_ids":[1,2],"not_before_ms":3}"#,
        r#"{"event_type":"tool_end","x":1}"#,
    ]);
    let trace = read_ok(text, &strict(ReadOptions::default()));
    assert_eq!((trace.len(), trace.block_tokens, trace.forest.blocks()), (2, 4, 4));
    assert_eq!(trace.requests.arrival_us, Some(vec![0, 3_000]));
    assert_eq!(findings(&trace), [("local_scope", 2, Some(2), None), ("foreign_rows", 2, Some(1), None)]);
    let error = read_err(format!("{header}\n"), &ReadOptions::default());
    assert_eq!(
        (error.code, error.message.as_str()),
        ("no_rows", "no usable row: all rows are of another kind")
    );
}
