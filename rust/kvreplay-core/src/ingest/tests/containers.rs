//! The same rows in every container, damaged archives, and files that are no traces.

use super::*;
use proptest::prelude::*;
use std::io::Write;

const ROWS: &str = concat!(
    "{\"timestamp\": 0, \"input_length\": 40, \"output_length\": 3, \"hash_ids\": [1, 2, 3], \"tenant\": \"a\"}\n",
    "{\"timestamp\": 5, \"input_length\": 30, \"output_length\": 0, \"hash_ids\": [1, 18446744073709551615], \"tenant\": \"b, c\"}\n",
    "{\"timestamp\": 7, \"input_length\": 9, \"hash_ids\": [], \"tenant\": null}\n",
    "{\"timestamp\": 9, \"input_length\": 48, \"output_length\": 2, \"hash_ids\": [1, 2, 4], \"tenant\": \"\\\"q\\\"\"}\n",
);

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn array() -> String {
    format!("[\n{}\n]\n", ROWS.trim_end().replace('\n', ",\n"))
}

#[test]
fn the_same_rows_are_the_same_trace() {
    let trace = read_ok(ROWS, &sixteen());
    assert_eq!(numbers(&trace), [vec![1, 2, 3], vec![1, u64::MAX], vec![], vec![1, 2, 4]]);
    assert_eq!(column(&trace, "tenant"), [Some("a"), Some("b, c"), None, Some("\"q\"")]);
    let csv = "timestamp,input_length,output_length,hash_ids,tenant\r\n\
        0,40,3,\"[1, 2, 3]\",a\r\n5,30,0,\"[1, 18446744073709551615]\",\"b, c\"\r\n\
        7,9,,[],\r\n9,48,2,1 2 4,\"\"\"q\"\"\"\r\n";
    let two =
        |pack: fn(&[u8]) -> Vec<u8>| [pack(&ROWS.as_bytes()[..100]), pack(&ROWS.as_bytes()[100..])].concat();
    let pretty = array().replace(", \"", ",\n\t\"").replace('{', "{ ");
    for (name, bytes) in [
        ("gz", gzip(ROWS.as_bytes())),
        ("gz of two members", two(gzip)),
        ("gz padded with zeros", [gzip(ROWS.as_bytes()), vec![0; 512]].concat()),
        ("zst", zst(ROWS.as_bytes())),
        ("zst of two frames", two(zst)),
        ("array", array().into_bytes()),
        ("pretty array", pretty.into_bytes()),
        ("gz array", gzip(array().as_bytes())),
        ("csv", csv.as_bytes().to_vec()),
        (
            "semicolons",
            csv.replace("\r\n", "\n").replace(", ", "\t").replace(',', ";").replace('\t', ", ").into_bytes(),
        ),
        ("bom and crlf", format!("\u{feff}{}", ROWS.replace('\n', "\r\n")).into_bytes()),
        ("no last line end", ROWS.trim_end().as_bytes().to_vec()),
    ] {
        let other = read_ok(bytes, &strict(sixteen()));
        assert_eq!(other.sha256(), trace.sha256(), "{name}");
    }
}

#[test]
fn findings_of_containers() {
    let members = |bytes: Vec<u8>| findings_of(bytes, "many_members");
    assert_eq!(members(gzip(ROWS.as_bytes())), None);
    assert_eq!(members([gzip(b""), zst(b"")].concat()), None);
    let two = [gzip(&ROWS.as_bytes()[..100]), gzip(&ROWS.as_bytes()[100..])].concat();
    assert_eq!(members(two), Some((1, "2 members".to_owned())));
    let crlf = ROWS.replace('\n', "\r\n");
    assert_eq!(findings_of(crlf.into_bytes(), "crlf").map(|f| f.0), Some(4));
    assert_eq!(findings_of(format!("\n \n{ROWS}\t\n").into_bytes(), "blank_lines").map(|f| f.0), Some(3));
}

fn findings_of(bytes: Vec<u8>, code: &str) -> Option<(u64, String)> {
    let trace = try_read(bytes, &sixteen()).ok()?;
    let found = findings(&trace).into_iter().find(|f| f.0 == code)?;
    Some((found.1, found.3.unwrap_or("").to_owned()))
}

#[test]
fn a_cut_archive_keeps_the_rows_before_the_cut() {
    let rows: Vec<String> = (0..800_u32)
        .map(|t| {
            let ids = [u64::from(t.wrapping_mul(2_654_435_761)), (1 << 40) + u64::from(t)];
            format!("{{\"timestamp\": {t}, \"input_length\": 32, \"hash_ids\": {ids:?}}}\n")
        })
        .collect();
    let rows = rows.concat();
    for (pack, name) in [(gzip as fn(&[u8]) -> Vec<u8>, "gz"), (zst, "zst")] {
        let whole = pack(rows.as_bytes());
        for cut in (0..whole.len()).step_by(7) {
            match try_read(&whole[..cut], &sixteen()) {
                Err(Error::Trace(error)) => {
                    assert!(["no_rows", "not_text"].contains(&error.code), "{name} {cut}: {error:?}");
                }
                Err(error) => panic!("{error}"),
                Ok(trace) => {
                    assert_eq!(trace.quality.count("cut_archive"), 1, "{name} {cut}");
                    assert!(trace.len() <= 800);
                    let error = read_err(&whole[..cut], &strict(sixteen()));
                    assert!(
                        ["cut_archive", "truncated_last_line"].contains(&error.code),
                        "{name} {cut}: {error:?}"
                    );
                }
            }
        }
        let mut tail = whole.clone();
        tail.extend_from_slice(b"garbage");
        let trace = read_ok(tail, &sixteen());
        assert_eq!((trace.len(), trace.quality.count("cut_archive")), (800, 1), "{name}");
    }
}

#[test]
fn files_that_are_no_traces() {
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 132054902\n";
    let code = |bytes: &[u8]| {
        let error = read_err(bytes, &ReadOptions::default());
        assert!(!error.hint.is_empty());
        (error.code, error.line)
    };
    assert_eq!(code(lfs.as_bytes()), ("lfs_pointer", None));
    assert_eq!(code(b"PAR1 and so on"), ("not_text", None));
    assert_eq!(code(&[7, 0, 200, 3].repeat(1000)), ("not_text", None));
    assert_eq!(code(b""), ("no_rows", None));
    assert_eq!(code(b"\n\n"), ("no_rows", None));
    assert_eq!(code(b"not json\n{}\n"), ("no_rows", Some(1)));
    assert_eq!(code(b"[]"), ("no_rows", None));
    assert_eq!(code(b"timestamp,hash_ids\n"), ("no_rows", None));
    assert!(read_err(lfs, &ReadOptions::default()).message.contains("Git LFS"));
    let missing = trace_error(read(vec![Source::path("no/such.jsonl")], &sixteen(), &Progress::default()));
    assert_eq!((missing.code, missing.file.as_str()), ("io", "no/such.jsonl"));
    let folder =
        trace_error(read(vec![Source::path(env!("CARGO_MANIFEST_DIR"))], &sixteen(), &Progress::default()));
    assert_eq!((folder.code, folder.message.as_str()), ("io", "this is a directory"));
}

#[test]
fn a_failing_reader_is_an_error_and_never_a_short_trace() {
    struct Failing(std::io::Cursor<Vec<u8>>);
    impl Read for Failing {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(out)? {
                0 => Err(std::io::Error::other("the disk is gone")),
                n => Ok(n),
            }
        }
    }
    let packed = gzip(ROWS.repeat(50).as_bytes());
    for bytes in [ROWS.as_bytes().to_vec(), packed[..packed.len() - 30].to_vec()] {
        let source = Source::reader("pipe", Box::new(Failing(std::io::Cursor::new(bytes))), None);
        let error = trace_error(read(vec![source], &sixteen(), &Progress::default()));
        assert_eq!(
            (error.code, error.file.as_str(), error.message.as_str()),
            ("io", "pipe", "the disk is gone")
        );
    }
}

#[test]
fn several_files_are_one_trace_and_lines_count_per_file() {
    let second = "{\"timestamp\": 20, \"input_length\": 16, \"hash_ids\": [1]}\n\n{\"timestamp\": 21}\n";
    let trace = read(vec![source("a", ROWS), source("b", second)], &sixteen(), &Progress::default()).unwrap();
    assert_eq!(trace.len(), 5);
    let missing = trace.quality.findings().iter().find(|f| CODES[f.code].code == "missing_field").unwrap();
    assert_eq!((missing.first_line, missing.detail.as_deref()), (Some(3), Some("first in b")));
    let sources = vec![source("a", ROWS), source("b", second)];
    let error = trace_error(read(sources, &strict(sixteen()), &Progress::default()));
    assert_eq!((error.file.as_str(), error.line, error.code), ("b", Some(3), "missing_field"));
}

#[test]
fn a_row_of_many_megabytes() {
    let ids = (0..1_500_000_u64).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
    let row = format!("{{\"timestamp\":1,\"input_length\":24000000,\"hash_ids\":[{ids}]}}");
    assert!(row.len() > 10_000_000);
    for bytes in [format!("{ROWS}{row}\n"), format!("[{},\n{row}]", ROWS.trim_end().replace('\n', ",\n"))] {
        let trace = read_ok(gzip(bytes.as_bytes()), &sixteen());
        assert_eq!((trace.len(), trace.totals().longest_path), (5, 1_500_000));
    }
}

#[test]
fn progress_and_cancellation() {
    let progress = Progress::default();
    read(vec![source("t", ROWS.repeat(10_000))], &sixteen(), &progress).unwrap();
    let (done, total) = progress.get();
    assert_eq!((done, total), (ROWS.len() as u64 * 10_000, ROWS.len() as u64 * 10_000));
    progress.cancel();
    let result = read(vec![source("t", ROWS.repeat(10_000))], &sixteen(), &progress);
    assert!(matches!(result, Err(Error::Cancelled)));
}

/// Splits a CSV text in the slowest obvious way.
fn slow_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            other => cell.push(other),
        }
    }
    rows
}

proptest! {
    #![proptest_config(crate::ingest::tests::cases(200))]
    #[test]
    fn csv_cells_equal_the_slow_splitter(cells in prop::collection::vec("([ab, \n\"]|\"\"){0,6}", 1..12)) {
        let quote = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
        let rows: Vec<String> =
            cells.iter().enumerate().map(|(at, cell)| format!("{at},16,[1],{}\n", quote(cell))).collect();
        let text = format!("time,input_tokens,hash_ids,tenant\n{}", rows.concat());
        let trace = read_ok(text.as_str(), &sixteen());
        let want = slow_csv(&text);
        let want: Vec<Option<&str>> =
            want[1..].iter().map(|row| Some(row[3].as_str()).filter(|cell| !cell.is_empty())).collect();
        prop_assert_eq!(&want.iter().flatten().map(ToString::to_string).collect::<Vec<_>>(),
            &cells.iter().filter(|c| !c.is_empty()).cloned().collect::<Vec<_>>());
        if want.iter().any(Option::is_some) {
            prop_assert_eq!(column(&trace, "tenant"), want);
        }
    }
}
