//! Rows behind a broken one: read on where the next row begins, or said to be lost; never quietly left out.

use super::*;

/// Code, count and first line of every finding.
type Codes = Vec<(&'static str, u64, Option<u64>)>;

/// The first ids of the rows that were read, and what was found.
#[track_caller]
fn rows(text: &str) -> (Vec<u64>, Codes) {
    let trace = read_ok(text, &sixteen());
    let first = numbers(&trace).iter().map(|path| path[0]).collect();
    (first, findings(&trace).into_iter().map(|(code, count, line, _)| (code, count, line)).collect())
}

/// Three rows a line, the second one as given.
fn array(second: &str) -> String {
    let row = |id: u32| format!("{{\"input_length\":16,\"hash_ids\":[{id}]}}");
    format!("[{},\n{second},\n{},\n{}]", row(1), row(3), row(4))
}

#[test]
fn an_array_goes_on_behind_a_broken_element() {
    for second in [
        "{\"input_length\":16,\"hash_ids\":[2}",
        "{\"input_length\":16,\"hash_ids\":[2]",
        "{\"input_length\":16,\"hash_ids\":[2",
        "{\"input_length\":16,\"x\":{\"y\":1,\"hash_ids\":[2]}",
        "{\"input_length\":16,\"x\":\"a,\"hash_ids\":[2]}",
        "{\"input_length\":16,\"x\":\"a\"b\",\"hash_ids\":[2]}",
        "{\"input_length\":16,\"x\":[[[[,\"hash_ids\":[2]}",
        "{\"input_length\"",
        "{",
        "nonsense",
    ] {
        let (ids, found) = rows(&array(second));
        assert_eq!(ids, [1, 3, 4], "{second}");
        assert_eq!(found[0].0, "json_syntax", "{second}");
        assert_eq!(found[0].2, Some(2), "{second}");
        // On one line there are no line ends to hold on to.
        assert_eq!(rows(&array(second).replace('\n', "")).0, [1, 3, 4], "{second}");
    }
}

#[test]
fn a_brace_too_many_costs_no_row() {
    let (ids, found) = rows(&array("{\"input_length\":16,\"hash_ids\":[2]}}"));
    assert_eq!((ids, found[0].0, found[0].2), (vec![1, 2, 3, 4], "json_syntax", Some(2)));
}

#[test]
fn a_first_element_that_is_broken_hides_nothing_either() {
    let text = array("{\"input_length\":16,\"hash_ids\":[2]}").replacen("[1]}", "[1]", 1);
    assert_eq!(rows(&text), (vec![2, 3, 4], vec![("json_syntax", 1, Some(1))]));
}

#[test]
fn what_cannot_be_found_again_is_said_to_be_lost() {
    // The rows behind begin with another key, so that nothing tells them from parts of the broken one.
    let text = "[{\"input_length\":16,\"hash_ids\":[1]},{\"input_length\":[{],{\"hash_ids\":[2]}";
    let trace = read_ok(text, &sixteen());
    assert_eq!(numbers(&trace), [[1]]);
    let details: Vec<_> = trace.quality.findings().iter().filter_map(|f| f.detail.as_deref()).collect();
    assert_eq!(details, ["line 1 hides where the next row begins: nothing behind it is read"]);
    assert_eq!(trace.quality.count("truncated_last_line"), 1);
}

#[test]
fn many_broken_elements_are_left_in_one_pass() {
    let broken = "{\"input_length\":{,".repeat(20_000);
    let text = array("0").replace("\n0,", &broken);
    let trace = read_ok(text, &sixteen());
    assert_eq!((trace.len(), trace.quality.count("json_syntax")), (3, 20_000));
    let text = array("0").replace("\n0,", &"{x},".repeat(50_000));
    assert_eq!(read_ok(text, &sixteen()).quality.count("json_syntax"), 50_000);
}

#[test]
fn the_window_does_not_decide() {
    let mut text = array("{\"input_length\":16,\"hash_ids\":[2]");
    text = text.replacen("[{", &format!("[{}{{", " ".repeat(1 << 18)), 1);
    let want = read_ok(text.as_str(), &sixteen());
    for piece in [1_usize, 7, 4096] {
        let pieces = Pieces { bytes: text.clone().into_bytes(), at: 0, piece };
        let source = Source::reader("t", Box::new(pieces), None);
        let trace = read(vec![source], &sixteen(), &Progress::default()).unwrap();
        assert_eq!((trace.sha256(), findings(&trace)), (want.sha256(), findings(&want)));
    }
}

/// A reader that gives few bytes at a time.
struct Pieces {
    bytes: Vec<u8>,
    at: usize,
    piece: usize,
}

impl std::io::Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.piece.min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[test]
fn a_stray_quote_in_a_table_costs_one_row() {
    let table = |second: &str| {
        format!(
            "input_length,hash_ids,who\n16,\"[1]\",a\n{second}\n16,\"[3]\",c\n16,\"[4]\",\"d\ne\"\n16,\"[5]\",f\n"
        )
    };
    for second in ["16,\"[2],b", "16,[2]\",b", "16,[2],\"b", "\"16,[2],b", "16,[2],b\""] {
        let (ids, found) = rows(&table(second));
        assert_eq!(ids, [1, 3, 4, 5], "{second}");
        assert_eq!(found, [("bad_type", 1, Some(3))], "{second}");
    }
    let trace = read_ok(table("16,2,b"), &sixteen());
    assert_eq!(column(&trace, "who"), ["a", "b", "c", "d\ne", "f"].map(Some));
    // The last line may be cut; a quote before it is a stray one.
    assert_eq!(rows("input_length,hash_ids\n16,1\n16,\"2").1, [("truncated_last_line", 1, Some(3))]);
    let (ids, found) = rows("input_length,hash_ids\n16,1\n16,\"2\n16,3\n");
    assert_eq!((ids, found), (vec![1, 3], vec![("bad_type", 1, Some(3))]));
}

#[test]
fn rows_in_an_array_are_read_as_their_format_says() {
    let chat = |chat: u32, parent: i32, time: &str| {
        format!(
            "{{\"chat_id\":{chat},\"parent_chat_id\":{parent},\"timestamp\":{time},\"input_length\":20,\"turn\":1,\"hash_ids\":[1,{}]}}",
            chat + 5
        )
    };
    let lines = [chat(1, -1, "61"), chat(2, 1, "75"), chat(3, -1, "7200")];
    let as_lines = read_ok(lines.join("\n"), &ReadOptions::default());
    let as_array = read_ok(format!("[{}]", lines.join(",\n")), &ReadOptions::default());
    assert_eq!((as_lines.origin.format.as_str(), as_array.origin.format.as_str()), ("bailian", "json_array"));
    assert_eq!(as_array.requests.arrival_us, Some(vec![61_000_000, 75_000_000, 7_200_000_000]));
    assert_eq!(as_array.sha256(), as_lines.sha256());
    assert_eq!(findings(&as_array), findings(&as_lines));
    let look_up = |time: &str, id: &str| {
        format!(
            "{{\"timestamp\":{time},\"request_id\":\"{id}\",\"chunk_size\":16,\"seq_len\":32,\"chunk_hashes\":[\"0x1\",\"0x2\"]}}"
        )
    };
    let lines = [look_up("1764400000.25", "a"), look_up("1764400009", "a"), look_up("1764400001", "b")];
    let as_lines = read_ok(lines.join("\n"), &ReadOptions::default());
    let as_array = read_ok(format!("[{}]", lines.join(",")), &ReadOptions::default());
    assert_eq!((as_array.len(), as_array.sha256()), (2, as_lines.sha256()));
}
