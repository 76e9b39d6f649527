//! Bounded, seeded fuzzing of whole reads: nothing crashes, and cutting a file is always said.

use super::*;
use proptest::prelude::*;

const VALID: &str = concat!(
    "{\"timestamp\": 0, \"input_length\": 40, \"output_length\": 3, \"hash_ids\": [1, 2, 30], \"model\": \"m\u{e9}\"}\n",
    "{\"timestamp\": 5, \"input_length\": 30, \"hash_ids\": [\"1\", 18446744073709551615], \"x\": {\"y\": [1, null]}}\n",
    "{\"timestamp\": 7, \"input_length\": 9, \"output_length\": 0, \"hash_ids\": []}\n",
    "{\"timestamp\": 9, \"input_length\": 48, \"hash_ids\": [1.0, 2, 4], \"parent\": \"a\\\"b\", \"block_size\": 16}\n",
);

fn array() -> String {
    format!("[{}]", VALID.trim_end().replace('\n', ",\n"))
}

/// Cutting at `cut` keeps the rows before it, and says so unless the cut lies between rows.
fn cut_is_said(text: &[u8], cut: usize, whole_rows: usize, between: bool) {
    match try_read(&text[..cut], &sixteen()) {
        Err(Error::Trace(error)) => assert_eq!((error.code, whole_rows), ("no_rows", 0), "cut {cut}"),
        Err(error) => panic!("{error}"),
        Ok(trace) => {
            assert_eq!(trace.len(), whole_rows, "cut {cut}");
            assert_eq!(trace.quality.count("truncated_last_line"), u64::from(!between), "cut {cut}");
        }
    }
}

#[test]
fn lines_cut_at_every_byte() {
    let text = VALID.as_bytes();
    for cut in 0..=text.len() {
        let head = &text[..cut];
        let ends = memchr::memchr_iter(b'\n', head).count();
        let rest = head.rsplit(|&b| b == b'\n').next().unwrap();
        let complete = serde_json::from_slice::<serde_json::Value>(rest).is_ok();
        cut_is_said(text, cut, ends + usize::from(complete), rest.is_empty() || complete);
    }
}

#[test]
fn an_array_cut_at_every_byte() {
    let text = array().into_bytes();
    for cut in 1..text.len() {
        let head = String::from_utf8_lossy(&text[..cut]).into_owned();
        let rows = (0..=4)
            .rev()
            .find(|&rows| {
                let closed: String = array().split_inclusive("},\n").take(rows).collect();
                head.len() >= closed.trim_end_matches([',', '\n', ']']).len()
            })
            .unwrap();
        cut_is_said(&text, cut, rows, false);
    }
}

#[test]
fn csv_cut_at_every_byte_never_invents_a_row() {
    let text = "timestamp,input_length,hash_ids,who\n0,40,\"[1, 2, 3]\",a\n5,30,\"[1, 9]\",b\n";
    for cut in 0..text.len() {
        match try_read(&text.as_bytes()[..cut], &sixteen()) {
            Err(Error::Trace(error)) => assert!(!error.hint.is_empty()),
            Err(error) => panic!("{error}"),
            Ok(trace) => assert!(
                numbers(&trace).iter().all(|path| [vec![1, 2, 3], vec![1, 9]].contains(path)),
                "{cut}"
            ),
        }
    }
}

/// A valid text with a few bytes changed, inserted or removed.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        Just(VALID.to_owned()),
        Just(array()),
        Just("timestamp,input_length,hash_ids,who\n0,40,\"[1, 2, 3]\",a\n5,30,1 9,b\n".to_owned()),
    ];
    let edit = (any::<prop::sample::Index>(), any::<u8>(), 0..4_u8);
    (text, prop::collection::vec(edit, 1..6)).prop_map(|(text, edits)| {
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

/// What every trace must hold, whatever was read.
fn sound(trace: &Trace) {
    let totals = trace.totals();
    assert!(trace.block_tokens > 0 && !trace.is_empty());
    for request in 0..trace.len() {
        let listed = trace.path_len(request);
        let input = trace.requests.input_tokens[request];
        assert!(listed <= input.div_ceil(trace.block_tokens_of(request)));
        assert!(trace.tokens(request, listed) <= u64::from(input));
    }
    assert!(trace.requests.arrival_us.as_ref().is_none_or(|times| times.is_sorted()));
    assert!(u64::from(trace.forest.blocks()) <= totals.block_refs);
    assert_eq!(trace.sha256().len(), 64);
}

/// The same text with white space around every comma outside strings: lists are then read element by element, not by
/// the fast reading of plain numbers.
fn spaced(text: &[u8]) -> Vec<u8> {
    let (mut out, mut quoted, mut escaped) = (Vec::new(), false, false);
    for &byte in text {
        match byte {
            b'\n' => (quoted, escaped) = (false, false),
            b'"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && byte == b'\\' && !escaped;
        if byte == b',' && !quoted { out.extend_from_slice(b" ,  ") } else { out.push(byte) }
    }
    out
}

/// Code, count and first line of every finding.
type Codes = Vec<(&'static str, u64, Option<u64>)>;

/// What a reading found, values aside: those quote the text.
fn outcome(bytes: &[u8], options: &ReadOptions) -> std::result::Result<(String, Codes), String> {
    match try_read(bytes, options) {
        Ok(trace) => {
            let codes = trace.quality.findings().iter().map(|f| (CODES[f.code].code, f.count, f.first_line));
            Ok((trace.sha256().to_owned(), codes.collect()))
        }
        Err(Error::Trace(error)) => Err(format!("{} {:?}", error.code, error.line)),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn the_shared_cases_read_the_same_element_by_element() {
    let Some(folder) = shared("cases") else { return };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    assert!(files.len() > 30);
    for path in files {
        let bytes = file_bytes(&path);
        for options in [ReadOptions::default(), sixteen()] {
            assert_eq!(outcome(&spaced(&bytes), &options), outcome(&bytes, &options), "{}", path.display());
        }
    }
}

/// Rows whose ids count up, start anew, are texts, signed, too large or no ids, with the list anywhere in the row.
fn listing() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => (0..40_u64, 1..14_u64).prop_map(|(first, count)| (first..first + count).map(|id| id.to_string()).collect::<Vec<_>>()),
        4 => (99_999_990..100_000_010_u64, 1..14_u64).prop_map(|(first, count)| (first..first + count).map(|id| id.to_string()).collect()),
        2 => any::<u64>().prop_map(|id| vec![id.to_string()]),
        1 => prop::sample::select(vec!["-1", "\"7\"", "\"a\"", "2.0", "1.5", "null", "1e3", "07", "18446744073709551616", "[1]", "{\"a\":[1,2]}"])
            .prop_map(|id| vec![id.to_owned()]),
    ];
    let glue = prop::sample::select(vec![",", ", ", " ,", ",  ", "\t,"]);
    let row = (prop::collection::vec(piece, 0..5), glue, 0..4_u8, 0..3_u32);
    prop::collection::vec(row, 1..12).prop_map(|rows| {
        let text = rows.into_iter().map(|(pieces, glue, shape, model)| {
            let list = format!("[{}]", pieces.concat().join(glue));
            let count = pieces.concat().len() * 16;
            match shape {
                0 => format!("{{\"hash_ids\":{list},\"input_length\":{count},\"model\":\"m{model}\"}}\n"),
                1 => format!("{{\"input_length\":{count},\"hash_ids\":[9,10],\"hash_ids\":{list}}}\r\n"),
                2 => format!("{{\"model\":\"m{model}\",\"input_length\":{count},\"hash_ids\":{list},\"output_hash_ids\":{list}}}\n"),
                _ => format!("{{\"input_length\": {count}, \"hash_ids\": {list}}}\n"),
            }
        });
        text.collect::<String>().into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn mutated_files_never_crash(bytes in mutated(), given in any::<bool>()) {
        let options = if given { sixteen() } else { ReadOptions::default() };
        if let Ok(trace) = try_read(bytes.as_slice(), &options) {
            sound(&trace);
            let again = read_ok(bytes.as_slice(), &options);
            prop_assert_eq!(again.sha256(), trace.sha256());
            // Strict reading finds something exactly when rows were rejected or repaired.
            let flawed = trace.quality.findings().iter().any(|f| {
                CODES[f.code].repair || CODES[f.code].severity == crate::trace::Severity::Error
            });
            let strict = try_read(bytes.as_slice(), &strict(options));
            prop_assert!(strict.is_ok() || flawed, "{:?}", strict.err());
        }
    }

    #[test]
    fn lists_read_the_same_element_by_element(bytes in listing(), edited in mutated()) {
        for bytes in [bytes, edited] {
            if !matches!(bytes.first(), Some(b'{' | b'[')) {
                continue; // CSV, in which white space belongs to the cell
            }
            for options in [sixteen(), strict(sixteen())] {
                prop_assert_eq!(outcome(&spaced(&bytes), &options), outcome(&bytes, &options), "{}", String::from_utf8_lossy(&bytes));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_crash(bytes in prop::collection::vec(any::<u8>(), 0..200), head in 0..6_usize) {
        let heads: [&[u8]; 6] = [b"", b"{\"hash_ids\":", b"[", b"time,hash_ids\n", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd"];
        let bytes = [heads[head], &bytes].concat();
        if let Ok(trace) = try_read(bytes, &ReadOptions::default()) {
            sound(&trace);
        }
    }
}
