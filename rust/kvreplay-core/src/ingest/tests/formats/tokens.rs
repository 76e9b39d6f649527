//! Token ids, records of objects, and images.

use super::*;
use crate::ingest::token_hash;

fn hashed(tokens: &[u32], block_tokens: u32) -> Vec<u64> {
    let mut out = Vec::new();
    token_hash::blocks(tokens, block_tokens, &mut out);
    out
}

#[test]
fn prompts_as_tokens_at_any_block_size() {
    let text = "{\"timestamp\":0,\"token_ids\":[5,6,7,8,9],\"output_length\":2}\n\
                {\"timestamp\":1,\"prompt_token_ids\":[5,6,7,8],\"model\":\"m\"}\n\
                {\"timestamp\":2,\"input_tok_ids\":\"[5, 6]\"}\n";
    let trace = read_as("token_ids", text, &ReadOptions::default());
    assert_eq!((trace.block_tokens, trace.requests.input_tokens.as_slice()), (16, &[5, 4, 2][..]));
    assert!(detail(&trace, "block_tokens_inferred").starts_with("16 tokens assumed"));
    for size in [1, 2, 4, 5] {
        let options = ReadOptions { block_tokens: Some(size), ..ReadOptions::default() };
        let trace = read_as("token_ids", text, &options);
        let want = [hashed(&[5, 6, 7, 8, 9], size), hashed(&[5, 6, 7, 8], size), hashed(&[5, 6], size)];
        assert_eq!(numbers(&trace), want, "{size}");
        assert_eq!((trace.block_tokens, trace.tail.name()), (size, "ceil"));
        assert_eq!(trace.quality.count("block_tokens_inferred"), 0);
        assert_eq!(trace.quality.count("length_inferred"), 0);
    }
    // A size that the rows state yields to the caller's.
    let stated = text.replace("\"timestamp\"", "\"block_size\":4,\"timestamp\"");
    assert_eq!(read_ok(stated.as_str(), &ReadOptions::default()).block_tokens, 4);
    let options = ReadOptions { block_tokens: Some(2), ..ReadOptions::default() };
    assert_eq!(read_ok(stated, &options).block_tokens, 2);
}

#[test]
fn tokens_in_other_containers() {
    let options = ReadOptions {
        block_tokens: Some(2),
        columns: vec![("token_ids".to_owned(), "ids".to_owned())],
        ..ReadOptions::default()
    };
    let want = [hashed(&[1, 2, 3], 2)];
    assert_eq!(numbers(&read_ok("[{\"ids\":[1,2,3],\"timestamp\":0}]", &options)), want);
    assert_eq!(numbers(&read_ok("timestamp,ids\n0,1 2 3\n", &options)), want);
    assert_eq!(numbers(&read_as("token_ids", "{\"ids\":[1,2,3]}\n", &options)), want);
    let empty = read_ok("{\"token_ids\":[],\"timestamp\":0}\n", &ReadOptions::default());
    assert_eq!((empty.len(), empty.quality.count("empty_path")), (1, 1));
}

#[test]
fn tokens_that_are_none() {
    let good = "{\"timestamp\":0,\"token_ids\":[1]}\n";
    for (bad, code, value) in [
        ("[1,null]", "bad_type", "token_ids: null"),
        ("[1,\"x\"]", "bad_type", "token_ids: a text"),
        ("[4294967296]", "id_out_of_range", "token_ids: 4294967296"),
        ("[-1]", "id_out_of_range", "token_ids: 18446744073709551615"),
        ("[1.5]", "id_not_integer", "token_ids: 1.5"),
        ("null", "missing_field", "token_ids"),
    ] {
        let text = format!("{good}{{\"timestamp\":1,\"token_ids\":{bad}}}\n");
        let trace = read_as("token_ids", &text, &sixteen());
        assert_eq!(findings(&trace), [(code, 1, Some(2), Some(value))], "{bad}");
    }
}

fn record(time: u32, id: u64, next: i64) -> Vec<u8> {
    [&time.to_le_bytes()[..], &id.to_le_bytes(), &4096_u32.to_le_bytes(), &next.to_le_bytes()].concat()
}

#[test]
fn records_of_objects() {
    let options = ReadOptions { format: "oracle_general".to_owned(), ..ReadOptions::default() };
    let bytes = [record(5, 7, 2), record(6, u64::MAX, -1), record(6, 7, -1)].concat();
    let trace = read_ok(bytes.as_slice(), &options);
    assert_eq!(numbers(&trace), [[7], [u64::MAX], [7]]);
    assert_eq!(trace.requests.arrival_us, Some(vec![5_000_000, 6_000_000, 6_000_000]));
    assert_eq!((trace.block_tokens, trace.totals().input_tokens), (1, 3));
    assert_eq!(findings(&trace), [("time_ties", 1, Some(3), Some("6000000 us"))]);
    let given = ReadOptions { block_tokens: Some(16), ..options.clone() };
    assert_eq!(read_ok(bytes.as_slice(), &given).totals().input_tokens, 48);
    // By its name alone, never by a guess.
    assert_eq!(read_err(bytes.as_slice(), &ReadOptions::default()).code, "not_text");
    for cut in 0..bytes.len() {
        if cut > 0 && cut % 24 == 0 {
            assert_eq!(read_ok(&bytes[..cut], &options).len(), cut / 24);
            continue;
        }
        let error = read_err(&bytes[..cut], &options);
        assert_eq!(error.code, if cut == 0 { "no_rows" } else { "truncated_last_line" }, "{cut}");
    }
    let error = read_err("{\"timestamp\": 1, \"input_length\": 3, \"hash_ids\": []}\n", &options);
    assert_eq!((error.code, error.line), ("bad_type", Some(1)));
}

#[test]
fn images_need_a_key() {
    let row = |time: u32, rest: &str| {
        format!("{{\"timestamp\":{time},\"input_length\":16,\"hash_ids\":[1]{rest}}}\n")
    };
    let text = [
        row(0, ",\"images\":[]"),
        row(1, ",\"images\":[\"a.png\"]"),
        row(2, ",\"num_images\":2,\"extra_keys\":[\"h1\", 5]"),
        row(3, ",\"image_count\":1,\"mm_hashes\":\"h1\""),
        row(4, ",\"num_images\":1"),
        row(5, ",\"extra_keys\":[ ]"),
    ]
    .concat();
    let trace = read_ok(text.as_str(), &sixteen());
    // No key, and two keys.
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces), (3, 3));
    assert_eq!(trace.origin.namespace_columns, ["extra_keys"]);
    assert_eq!(column(&trace, "extra_keys")[2..4], [Some("[\"h1\", 5]"), Some("h1")]);
    assert!(detail(&trace, "mixed_namespaces").starts_with("2 rows carry images"));
    let keyed = read_ok(row(2, ",\"num_images\":2,\"extra_keys\":\"h1\""), &sixteen());
    assert_eq!(keyed.quality.count("mixed_namespaces"), 0);
}
