//! `output_hash_ids`: kept beside the paths, joined to them on demand, and no part of any number without that.

use super::*;
use crate::trace::{Joined, NativeHeader, NativeReader, NativeWriter, OutputIds, Quality};
use proptest::prelude::*;
use std::collections::HashMap;

/// Output ids per request, as texts.
fn outputs(trace: &Trace) -> Vec<Vec<String>> {
    let list = |request| match &trace.requests.outputs {
        None => Vec::new(),
        Some(outputs) => outputs.of(request).map(shown).collect(),
    };
    (0..trace.len()).map(list).collect()
}

fn shown(id: Id<'_>) -> String {
    match id {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => text.to_owned(),
    }
}

/// The paths with outputs, as texts.
fn full(joined: &Joined) -> Vec<Vec<String>> {
    let (forest, ids) = (&joined.trace.forest, &joined.trace.ids);
    let mut path = Vec::new();
    let nodes = joined.full.iter();
    nodes
        .map(|&node| {
            forest.path(node, &mut path);
            path.iter().map(|&block| shown(ids.get(block))).collect()
        })
        .collect()
}

fn joined(trace: &Trace) -> Joined {
    trace.joined().unwrap().expect("outputs")
}

fn without_outputs(text: &str) -> Trace {
    let rows = text.lines().map(|line| {
        let mut row: serde_json::Value = serde_json::from_str(line).unwrap();
        row.as_object_mut().unwrap().remove("output_hash_ids");
        row.to_string()
    });
    read_ok(rows.collect::<Vec<_>>().join("\n"), &sixteen())
}

const ROWS: &str = concat!(
    r#"{"timestamp":0,"input_length":40,"hash_ids":[1,2,3],"output_hash_ids":[7,"8"]}"#,
    "\n",
    r#"{"timestamp":9,"input_length":16,"hash_ids":[1]}"#,
    "\n",
    r#"{"timestamp":5,"input_length":70,"hash_ids":[1,2,7,8,-1],"output_hash_ids":"[9]"}"#,
    "\n",
    r#"{"timestamp":6,"input_length":10,"hash_ids":[],"output_hash_ids":[4]}"#,
    "\n",
    r#"{"timestamp":7,"input_length":10,"hash_ids":[4],"output_hash_ids":null}"#,
    "\n",
);

#[test]
fn rows_keep_them_and_paths_do_not_change() {
    let trace = read_ok(ROWS, &sixteen());
    let plain = without_outputs(ROWS);
    assert_eq!((&trace.forest, &trace.ids), (&plain.forest, &plain.ids));
    assert_eq!(trace.totals(), plain.totals());
    assert_eq!(findings(&trace), findings(&plain));
    // In replay order: the row of time 9 comes last.
    assert_eq!(outputs(&trace), [vec!["7", "8"], vec!["9"], vec!["4"], vec![], vec![]]);
    assert!(trace.sha256() != plain.sha256());
    assert!(plain.requests.outputs.is_none() && plain.joined().unwrap().is_none());
    let names = [("output_hash_ids".to_owned(), "decoded".to_owned())];
    let options = ReadOptions { columns: names.to_vec(), ..sixteen() };
    let mapped = read_ok(ROWS.replace("output_hash_ids", "decoded"), &options);
    assert_eq!(mapped.sha256(), trace.sha256());
}

#[test]
fn a_joined_path_is_the_full_blocks_and_the_outputs() {
    let trace = read_ok(ROWS, &sixteen());
    let joined = joined(&trace);
    let minus_one = u64::MAX.to_string();
    let want: [&[&str]; 5] = [&["1", "2", "7", "8"], &["1", "2", "7", "8", "9"], &["4"], &[], &["1"]];
    assert_eq!(full(&joined), want);
    assert_eq!(paths(&joined.trace), paths(&trace));
    // 1 2 3 | 7 8 | then 18446744073709551615 of the second request's tail, its 9, and 4 once for both requests.
    let blocks: Vec<String> =
        (0..joined.trace.forest.blocks()).map(|b| shown(joined.trace.ids.get(b))).collect();
    assert_eq!(blocks, ["1", "2", "3", "7", "8", minus_one.as_str(), "9", "4"]);
    assert!(joined.trace.origin.chained && joined.trace.requests.outputs.is_none());
}

#[test]
fn an_output_goes_on_inside_a_known_chain() {
    // The first prompt is one chain 1 2 3; the second output is its third block.
    let text = concat!(
        r#"{"input_length":48,"hash_ids":[1,2,3]}"#,
        "\n",
        r#"{"input_length":40,"hash_ids":[1,2,9],"output_hash_ids":[3,4]}"#,
    );
    let joined = joined(&read_ok(text, &sixteen()));
    assert_eq!(joined.trace.forest.blocks(), 5);
    assert_eq!(full(&joined), [vec!["1", "2", "3"], vec!["1", "2", "3", "4"]]);
}

#[test]
fn bad_output_ids_reject_the_row() {
    let row = |ids: &str| format!("{{\"input_length\":16,\"hash_ids\":[1],\"output_hash_ids\":{ids}}}\n");
    for (ids, code, value) in [
        ("[1.5]", "id_not_integer", "output_hash_ids: 1.5"),
        ("[1e17]", "ids_look_rounded", "output_hash_ids: 1e17"),
        ("[2,null]", "bad_type", "output_hash_ids: null"),
        ("7", "bad_type", "output_hash_ids: 7"),
        ("[18446744073709551616]", "id_out_of_range", "output_hash_ids: 18446744073709551616"),
        ("\"[2\"", "bad_type", "output_hash_ids: [2"),
    ] {
        let trace = read_ok(row(ids) + &row("[2]"), &sixteen());
        assert_eq!(findings(&trace), [(code, 1, Some(1), Some(value))]);
        assert_eq!(outputs(&trace), [["2"]]);
    }
}

#[test]
fn more_ids_than_the_lengths_hold_are_cut() {
    let row = |output: &str| {
        format!("{{\"input_length\":40,{output}\"hash_ids\":[1,2,3],\"output_hash_ids\":[5,6,7]}}\n")
    };
    // 40 + 9 tokens touch four blocks, two of which hold only the prompt.
    let trace = read_ok(row("\"output_length\":9,") + &row(""), &sixteen());
    assert_eq!(outputs(&trace), [vec!["5", "6"], vec!["5", "6", "7"]]);
    let value = "3 output ids, 2 blocks decoded";
    assert_eq!(findings(&trace), [("length_mismatch", 1, Some(1), Some(value))]);
    let detail = trace.quality.findings().iter().find_map(|f| f.detail.clone().filter(|d| d.contains("cut")));
    assert!(detail.unwrap().ends_with("1 with more output ids than the lengths hold (cut)"));
    let error = read_err(row("") + &row("\"output_length\":9,"), &strict(sixteen()));
    assert_eq!((error.code, error.line), ("length_mismatch", Some(2)));
}

#[test]
fn ids_below_two_parents_once_joined_are_named() {
    let text = concat!(
        r#"{"input_length":16,"hash_ids":[1],"output_hash_ids":[5]}"#,
        "\n",
        r#"{"input_length":16,"hash_ids":[2],"output_hash_ids":[5]}"#,
        "\n",
    );
    let trace = read_ok(text, &sixteen());
    assert!(trace.origin.chained);
    assert_eq!(findings(&trace), [("id_with_two_parents", 1, Some(2), Some("5"))]);
    assert_eq!(read_err(text, &strict(sixteen())).line, Some(2));
    let joined = joined(&trace);
    assert_eq!((joined.trace.forest.blocks(), joined.trace.origin.chained), (4, false));
}

#[test]
fn deltas_and_outputs_are_refused() {
    let text = r#"{"session_id":"s","input_length":16,"hash_ids":[1],"output_hash_ids":[5]}"#;
    let error = read_err(text, &ReadOptions { session_rows: SessionRows::Delta, ..sixteen() });
    assert_eq!((error.code, error.line), ("delta_rows", Some(1)));
}

#[test]
fn duplicates_are_equal_in_their_outputs_too() {
    let row = |output: u32| {
        format!(
            "{{\"request_id\":\"r\",\"input_length\":16,\"hash_ids\":[1],\"output_hash_ids\":[{output}]}}\n"
        )
    };
    assert!(findings(&read_ok(row(11) + &row(12), &sixteen())).is_empty());
    let again = read_ok(row(11) + &row(12) + &row(11), &sixteen());
    assert_eq!(findings(&again), [("duplicate_request", 1, Some(3), Some("r"))]);
}

#[test]
fn csv_and_columns_give_what_lines_give() {
    let want = read_ok(
        concat!(
            "{\"input_length\":32,\"hash_ids\":[1,2],\"output_hash_ids\":[3,4]}\n",
            "{\"input_length\":16,\"hash_ids\":[1]}\n"
        ),
        &sixteen(),
    );
    let csv = "input_length,hash_ids,output_hash_ids\n32,\"[1, 2]\",3 4\n16,1,\n";
    assert_eq!(read_ok(csv, &sixteen()).sha256(), want.sha256());
    let lists = |offsets, values| BatchColumn::Lists {
        offsets,
        validity: Validity(None),
        values: Values::U64(values),
        values_validity: Validity(None),
    };
    let lengths = BatchColumn::Scalars { values: Values::I64(&[32, 16]), validity: Validity(None) };
    let columns = vec![
        ("input_length", lengths),
        ("hash_ids", lists(&[0, 2, 3], &[1, 2, 1])),
        ("output_hash_ids", lists(&[0, 2, 2], &[3, 4])),
    ];
    let mut reader = ColumnReader::new("", &sixteen()).unwrap();
    reader.push(&Batch { rows: 2, columns }, &Progress::default()).unwrap();
    assert_eq!(reader.finish("arrow").unwrap().sha256(), want.sha256());
}

#[test]
fn the_golden_traces_of_decoded_blocks() {
    let Some(folder) = shared("golden/engines") else { return };
    for (name, requests) in [("decode16", 99), ("bigdec16", 0)] {
        let bytes = file_bytes(&folder.join(format!("{name}.trace.jsonl")));
        let text = String::from_utf8(bytes).unwrap();
        let trace = read_ok(text.as_str(), &sixteen());
        let joined = joined(&trace);
        let got = full(&joined);
        for (line, path) in text.lines().zip(&got) {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let list = |key: &str| -> Vec<String> {
                row.get(key)
                    .into_iter()
                    .flat_map(|v| v.as_array().unwrap())
                    .map(ToString::to_string)
                    .collect()
            };
            let full_blocks = row["input_length"].as_u64().unwrap() as usize / 16;
            let prompt = list("hash_ids");
            let want = [&prompt[..full_blocks.min(prompt.len())], &list("output_hash_ids")[..]].concat();
            assert_eq!(path, &want, "{name}");
        }
        assert!(joined.trace.origin.chained && joined.trace.forest.blocks() > trace.forest.blocks());
        assert!(requests == 0 || trace.len() >= requests, "{name}: {}", trace.len());
        assert_eq!(trace.forest, without_outputs(&text).forest);
    }
}

/// A path, the tokens that its last block lacks, and output ids.
type Spec = (u32, Vec<u64>, u32, Vec<u64>);

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let ids = || prop::collection::vec(0..4_u64, 0..6);
    prop::collection::vec((0..3_u32, ids(), 0..16_u32, ids()), 1..30)
}

fn text_of(specs: &[Spec], texts: bool) -> String {
    let list = |ids: &[u64]| {
        let id = |&id: &u64| if texts && id > 1 { format!("\"t{id}\"") } else { id.to_string() };
        format!("[{}]", ids.iter().map(id).collect::<Vec<_>>().join(","))
    };
    let row = |(model, path, short, outputs): &Spec| {
        let input = (path.len() as u32 * 16).saturating_sub(*short);
        let (ids, outputs) = (list(path), list(outputs));
        format!(
            "{{\"model\":\"m{model}\",\"input_length\":{input},\"hash_ids\":{ids},\"output_hash_ids\":{outputs}}}\n"
        )
    };
    specs.iter().map(row).collect()
}

/// Blocks of the joined paths by the obvious map from (namespace or parent, id), prompts and outputs in turn.
fn slow(trace: &Trace) -> Vec<(Vec<u32>, Vec<u32>)> {
    let mut numbers: HashMap<(std::result::Result<u32, String>, String), u32> = HashMap::new();
    let mut out = Vec::new();
    let models = column(trace, "model");
    for (request, prompt) in paths(trace).iter().enumerate() {
        let mut walk = |ids: &[String]| -> Vec<u32> {
            let mut parent = Err(models[request].unwrap().to_owned());
            let number = |id: &String| {
                let fresh = numbers.len() as u32;
                let block = *numbers.entry((parent.clone(), id.clone())).or_insert(fresh);
                parent = Ok(block);
                block
            };
            ids.iter().map(number).collect()
        };
        // A text that is written like a number's place in no table stays a text: t2 is never 2.
        let prompt: Vec<String> = prompt.iter().map(|&id| shown(id)).collect();
        let listed = walk(&prompt);
        let full = trace.full_blocks(request) as usize;
        let with = [&prompt[..full], &outputs(trace)[request]].concat();
        let joined = walk(&with);
        out.push((listed, joined));
    }
    out
}

fn through_native(trace: &Trace, limit: usize) -> Trace {
    let (mut writer, mut reader) = (NativeWriter::new(trace), NativeReader::default());
    while let Some(rows) = writer.next_rows(limit) {
        reader.push(&rows).unwrap();
    }
    let header = NativeHeader {
        block_tokens: trace.block_tokens,
        tail: trace.tail,
        origin: trace.origin.clone(),
        quality: Quality::default(),
    };
    reader.finish(header).unwrap()
}

fn both_paths(joined: &Joined) -> Vec<(Vec<u32>, Vec<u32>)> {
    let path = |node| {
        let mut out = Vec::new();
        joined.trace.forest.path(node, &mut out);
        out
    };
    joined.trace.requests.node.iter().zip(&joined.full).map(|(&a, &b)| (path(a), path(b))).collect()
}

proptest! {
    #[test]
    fn joined_traces_equal_the_obvious_map(specs in specs(), texts: bool) {
        let trace = read_ok(text_of(&specs, texts), &sixteen());
        let Some(joined) = trace.joined().unwrap() else { return Ok(()) };
        prop_assert_eq!(both_paths(&joined), slow(&trace));
    }

    #[test]
    fn they_survive_writers_and_cuts(specs in specs(), texts: bool, limit in 1..9_usize, mask: u64) {
        let trace = read_ok(text_of(&specs, texts), &sixteen());
        let native = through_native(&trace, limit);
        prop_assert_eq!(&native.requests.outputs, &trace.requests.outputs);
        prop_assert_eq!(native.sha256(), trace.sha256());
        let mut out = Vec::new();
        write_mooncake(&trace, &mut out).unwrap();
        let again = read_ok(out, &sixteen());
        prop_assert_eq!(again.sha256(), trace.sha256());
        let keep: Vec<u32> = (0..trace.len() as u32).filter(|r| mask >> (r % 64) & 1 == 1).collect();
        let part = trace.select(&keep).unwrap();
        let want: Vec<_> = keep.iter().map(|&r| outputs(&trace)[r as usize].clone()).collect();
        prop_assert_eq!(outputs(&part), want);
        prop_assert!(part.requests.outputs.as_ref().is_none_or(|outputs| !outputs.is_empty()));
    }

    #[test]
    fn anonymized_outputs_are_the_blocks_they_were(specs in specs(), texts: bool) {
        let trace = read_ok(text_of(&specs, texts), &sixteen());
        let hidden = trace.anonymize(false).unwrap();
        let (Some(was), Some(is)) = (trace.joined().unwrap(), hidden.joined().unwrap()) else {
            prop_assert!(trace.requests.outputs.is_none());
            return Ok(())
        };
        prop_assert_eq!(both_paths(&is), both_paths(&was));
        prop_assert_eq!(&hidden.forest.start, &trace.forest.start);
        // Every block of the joined trace has the number that says when it was seen first.
        for block in 0..is.trace.forest.blocks() {
            prop_assert_eq!(is.trace.ids.get(block), Id::Number(u64::from(block)));
        }
    }
}

#[test]
fn namespaces_of_outputs_behind_empty_prompts() {
    let row = |model: &str| {
        format!("{{\"model\":\"{model}\",\"input_length\":5,\"hash_ids\":[],\"output_hash_ids\":[1]}}\n")
    };
    let first = "{\"model\":\"a\",\"input_length\":16,\"hash_ids\":[9]}\n";
    let two = read_ok(first.to_owned() + &row("a") + &row("b"), &sixteen());
    let one = read_ok(first.to_owned() + &row("a") + &row("a"), &sixteen());
    assert_eq!((joined(&two).trace.forest.blocks(), joined(&one).trace.forest.blocks()), (3, 2));
    let outputs: &OutputIds = two.requests.outputs.as_ref().unwrap();
    assert_eq!([0, 1, 2].map(|r| (outputs.count(r), outputs.namespace(r))), [(0, 0), (1, 0), (1, 1)]);
    let native = through_native(&two, 1);
    assert_eq!(native.requests.outputs, two.requests.outputs);
}
