//! The scanner against `serde_json` (with its own number type) and against hand-worked texts.

use super::number::Decimal;
use super::*;
use proptest::prelude::*;

/// Scans a text as one value.
fn check(text: &[u8]) -> Result<(), Bad> {
    let mut scanner = Scanner::new(text, text.len());
    scanner.skip()?;
    scanner.finish()
}

fn number(text: &str) -> Option<Number> {
    number::from_text(text)
}

#[test]
fn numbers_are_exact() {
    let decimal = |negative, whole, nanos, fraction| {
        Some(Number::Decimal(Decimal { negative, whole, nanos, fraction }))
    };
    for (text, want) in [
        ("0", Some(Number::Unsigned(0))),
        ("18446744073709551615", Some(Number::Unsigned(u64::MAX))),
        ("18446744073709551616", Some(Number::Large)),
        ("-1", Some(Number::Negative(1))),
        ("-0", Some(Number::Negative(0))),
        ("-99999999999999999999", Some(Number::Large)),
        ("1.5", decimal(false, Some(1), 500_000_000, true)),
        ("-0.25", decimal(true, Some(0), 250_000_000, true)),
        ("1.0", decimal(false, Some(1), 0, false)),
        ("3e0", decimal(false, Some(3), 0, false)),
        ("12e3", decimal(false, Some(12_000), 0, false)),
        ("1200e-2", decimal(false, Some(12), 0, false)),
        ("1234e-3", decimal(false, Some(1), 234_000_000, true)),
        ("5e-3", decimal(false, Some(0), 5_000_000, true)),
        ("1e-400000000000", decimal(false, Some(0), 0, true)),
        ("0e400000000000", decimal(false, Some(0), 0, false)),
        ("1e400000000000", decimal(false, None, 0, false)),
        ("18446744073709551616.0", decimal(false, None, 0, false)),
        ("0.1234567899", decimal(false, Some(0), 123_456_789, true)),
        ("NaN", Some(Number::NotFinite)),
        ("-Infinity", Some(Number::NotFinite)),
        ("Infinity", Some(Number::NotFinite)),
        ("", None),
        ("-", None),
        ("+1", None),
        ("01", None),
        ("1.", None),
        (".5", None),
        ("1e", None),
        ("1e+", None),
        (" 1", None),
        ("1 ", None),
        ("1x", None),
        ("Nan", None),
    ] {
        assert_eq!(number(text), want, "{text}");
    }
}

#[test]
fn strings() {
    let text = |raw: &str| {
        let mut scanner = Scanner::new(raw.as_bytes(), raw.len());
        scanner.text().map(|text| (text.into_owned(), scanner.at))
    };
    assert_eq!(text(r#""a\"b\\\/\b\f\n\r\t""#), Ok(("a\"b\\/\u{8}\u{c}\n\r\t".to_owned(), 20)));
    assert_eq!(text(r#""\u00e9\ud83d\ude00""#), Ok(("é😀".to_owned(), 20)));
    assert_eq!(text(r#""\ud83d""#).unwrap().0, "\u{fffd}");
    assert_eq!(text(r#""\ud83dx\ude00""#).unwrap().0, "\u{fffd}x\u{fffd}");
    for (raw, bad) in [
        ("\"", Bad::Eof),
        ("\"ab", Bad::Eof),
        ("\"a\\", Bad::Eof),
        ("\"\\u12", Bad::Eof),
        ("\"\\u12g4\"", Bad::Syntax),
        ("\"\\x\"", Bad::Syntax),
        ("\"a\nb\"", Bad::Syntax),
    ] {
        assert_eq!(text(raw), Err(bad), "{raw}");
    }
    assert_eq!(check(b"\"\xff\""), Err(Bad::Utf8));
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    assert_eq!(check(&nested(127)), Ok(()));
    assert_eq!(check(&nested(128)), Err(Bad::Syntax));
    assert_eq!(check(&b"[".repeat(1_000_000)), Err(Bad::Syntax));
    assert_eq!(check(&b"{\"a\":".repeat(1_000_000)), Err(Bad::Syntax));
}

#[test]
fn a_beginning_of_a_valid_text_ends_too_early() {
    let text = br#" {"a": [1, -2.5e3, "x\u00e9y", true, false, null, {}, []], "b": {"c": NaN}} "#;
    for cut in 0..text.len() - 2 {
        assert_eq!(check(&text[..cut]), Err(Bad::Eof), "{:?}", String::from_utf8_lossy(&text[..cut]));
    }
    assert_eq!(check(text), Ok(()));
}

/// Any JSON value, as text, with white space here and there.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let list = prop::collection::vec(inner, 0..6);
        (list, "[ \t]{0,2}", any::<bool>()).prop_map(|(values, white, object)| {
            let glue = format!("{white},{white}");
            if object {
                let pairs: Vec<String> = values
                    .iter()
                    .enumerate()
                    .map(|(at, value)| format!("\"k{at}\"{white}:{value}"))
                    .collect();
                format!("{{{white}{}{white}}}", pairs.join(&glue))
            } else {
                format!("[{white}{}{white}]", values.join(&glue))
            }
        })
    })
}

/// What the oracle says of a text; `None` where it knows less than we do.
fn oracle(text: &[u8]) -> Option<bool> {
    let ours_only = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
    if ours_only(b"NaN") || ours_only(b"Infinity") || ours_only(b"\\u") {
        return None; // words of Python's writer, and halves of surrogate pairs
    }
    match serde_json::from_slice::<serde_json::Value>(text) {
        Ok(_) => Some(true),
        Err(error) if error.to_string().contains("number out of range") => None,
        Err(_) => Some(false),
    }
}

/// Lists of which the fast reading sees the end of the text right behind a comma.
#[test]
fn lists_that_end_where_eight_bytes_can_be_loaded() {
    for text in ["[1234567,", "[1,234567,", "[1234567", "[12345678,", "[1234567, ", "[1,2,3,4,"] {
        let mut list = crate::ingest::id_list::IdList::default();
        let mut scanner = Scanner::new(text.as_bytes(), text.len());
        assert_eq!(ids::list(&mut scanner, &mut list), Err(Bad::Eof), "{text}");
        assert!(ids::in_text(text, &mut list).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn valid_texts_are_taken(text in json()) {
        prop_assert_eq!(check(text.as_bytes()), Ok(()));
    }

    #[test]
    fn mutated_texts_are_judged_as_the_oracle_judges(
        text in json(),
        at in any::<prop::sample::Index>(),
        with in prop::sample::select(&b"{}[]\",:\\ 019-+.eEtfn\x00\x1f\x80\xff\n"[..]),
        how in 0..3_u8,
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = with,
            1 => bytes.insert(at, with),
            _ => drop(bytes.remove(at)),
        }
        if let Some(valid) = oracle(&bytes) {
            prop_assert_eq!(check(&bytes).is_ok(), valid, "{:?}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = check(&bytes);
        let mut list = crate::ingest::id_list::IdList::default();
        let _ = ids::list(&mut Scanner::new(&bytes, bytes.len()), &mut list);
        let _ = ids::in_text(&String::from_utf8_lossy(&bytes), &mut list);
    }

    #[test]
    fn decimals_equal_exact_arithmetic(whole in 0..1_000_000_000_u64, fraction in "[0-9]{0,9}", shift in -9..9_i32) {
        // whole.fraction * 10^shift in billionths of billionths, as one integer.
        let text = if fraction.is_empty() { format!("{whole}e{shift}") } else { format!("{whole}.{fraction}e{shift}") };
        let Some(Number::Decimal(decimal)) = number(&text) else { panic!("{text}") };
        let digits: u128 = format!("{whole}{fraction:0<9}").parse().unwrap();
        let scaled = digits * 10_u128.pow((9 + shift) as u32); // unit: 1e-18
        let want_whole = (scaled / 10_u128.pow(18)) as u64;
        let want_nanos = (scaled % 10_u128.pow(18) / 10_u128.pow(9)) as u32;
        prop_assert_eq!((decimal.whole, decimal.nanos), (Some(want_whole), want_nanos), "{}", text);
        prop_assert_eq!(decimal.fraction, !scaled.is_multiple_of(10_u128.pow(18)));
    }

    #[test]
    fn lists_that_count_up_equal_the_slow_reading(
        runs in prop::collection::vec((prop_oneof![0..120_u64, 9_990..10_010_u64, 99_999_900..100_000_100_u64, any::<u64>()], 1..40_u64), 0..8),
        glue in "( |  |\t)?,( |  )?",
        cut in any::<prop::sample::Index>(),
    ) {
        let ids: Vec<u64> = runs.iter().flat_map(|&(first, count)| (0..count).map_while(move |i| first.checked_add(i))).collect();
        let text = format!("[{}]", ids.iter().map(u64::to_string).collect::<Vec<_>>().join(&glue));
        let mut list = crate::ingest::id_list::IdList::default();
        let mut scanner = Scanner::new(text.as_bytes(), text.len());
        prop_assert_eq!(ids::list(&mut scanner, &mut list), Ok(None));
        prop_assert_eq!(scanner.at, text.len());
        prop_assert_eq!(list.numbers(), &ids);
        // With more behind it, as in a file, and cut anywhere.
        let behind = format!("{text}\n1, 2, 3, 4, 5]\n");
        list.clear();
        let mut scanner = Scanner::new(behind.as_bytes(), text.len());
        prop_assert_eq!(ids::list(&mut scanner, &mut list), Ok(None));
        prop_assert_eq!(list.numbers(), &ids);
        let cut = cut.index(text.len());
        let mut scanner = Scanner::new(behind.as_bytes(), cut);
        prop_assert_eq!(ids::list(&mut scanner, &mut list), Err(Bad::Eof));
    }

    #[test]
    fn id_lists_equal_the_slow_reading(
        ids in prop::collection::vec(prop_oneof![any::<u64>(), 0..2000_u64, any::<u64>().prop_map(|n| n >> 40)], 0..40),
        glue in "( |  |\t|\n)?,( |  |\t|\n)?",
        tail in "[ ]?",
    ) {
        let text = ids.iter().map(u64::to_string).collect::<Vec<_>>().join(&glue);
        let text = format!("[{tail}{text}{tail}]");
        let mut list = crate::ingest::id_list::IdList::default();
        let mut scanner = Scanner::new(text.as_bytes(), text.len());
        prop_assert_eq!(ids::list(&mut scanner, &mut list), Ok(None));
        prop_assert_eq!(scanner.at, text.len());
        prop_assert_eq!(list.numbers(), &ids);
    }
}
