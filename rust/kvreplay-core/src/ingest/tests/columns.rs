//! Rows by columns give the trace that the same rows give as text.

use super::*;

const ALL: Validity<'static> = Validity(None);

fn scalars(values: Values<'_>) -> BatchColumn<'_> {
    BatchColumn::Scalars { values, validity: ALL }
}

fn lists<'a>(offsets: &'a [usize], values: Values<'a>) -> BatchColumn<'a> {
    BatchColumn::Lists { offsets, validity: ALL, values, values_validity: ALL }
}

fn finish(batches: &[Batch<'_>], options: &ReadOptions) -> Result<Trace> {
    let mut reader = ColumnReader::new("frame", options)?;
    for batch in batches {
        reader.push(batch, &Progress::default())?;
    }
    reader.finish("arrow")
}

#[test]
fn equal_to_the_same_rows_as_text() {
    let text = concat!(
        "{\"timestamp\":0,\"input_length\":48,\"output_length\":1,\"hash_ids\":[1,2,18446744073709551615],\"tenant\":\"a\"}\n",
        "{\"timestamp\":7,\"input_length\":16,\"hash_ids\":[-1],\"tenant\":\"b\"}\n",
        "{\"timestamp\":9,\"input_length\":5,\"output_length\":2,\"hash_ids\":[]}\n",
    );
    let want = read_ok(text, &sixteen());
    let nulls = |bits: &'static [u8]| Validity(Some((bits, 1)));
    let columns = vec![
        ("timestamp", scalars(Values::I64(&[0, 7, 9]))),
        ("input_length", scalars(Values::F64(&[48.0, 16.0, 5.0]))),
        (
            "output_length",
            BatchColumn::Scalars { values: Values::U64(&[1, 99, 2]), validity: nulls(&[0b1010]) },
        ),
        ("hash_ids", lists(&[0, 3, 4, 4], Values::U64(&[1, 2, u64::MAX, u64::MAX]))),
        (
            "tenant",
            BatchColumn::Scalars { values: Values::Text(&["a", "b", ""]), validity: nulls(&[0b0110]) },
        ),
    ];
    let trace = finish(&[Batch { rows: 3, columns: columns.clone() }], &sixteen()).unwrap();
    assert_eq!((trace.sha256(), trace.origin.format.as_str()), (want.sha256(), "arrow"));
    let mut signed = columns;
    signed[3].1 = lists(&[0, 3, 4, 4], Values::I64(&[1, 2, -1, -1]));
    signed[0].1 = scalars(Values::Instant(&[0, 7, 9], TimeUnit::Millis));
    assert_eq!(finish(&[Batch { rows: 3, columns: signed }], &sixteen()).unwrap().sha256(), want.sha256());
}

#[test]
fn an_empty_list_a_null_list_and_a_null_element() {
    let batch = Batch {
        rows: 4,
        columns: vec![
            ("timestamp", scalars(Values::U32(&[0, 1, 2, 3]))),
            ("input_length", scalars(Values::I64(&[16, 16, 16, -1]))),
            (
                "hash_ids",
                BatchColumn::Lists {
                    offsets: &[0, 0, 0, 2, 3],
                    validity: Validity(Some((&[0b1101], 0))),
                    values: Values::U64(&[5, 0, 6]),
                    values_validity: Validity(Some((&[0b101], 0))),
                },
            ),
        ],
    };
    let trace = finish(std::slice::from_ref(&batch), &sixteen()).unwrap();
    assert_eq!(
        findings(&trace),
        [
            ("missing_field", 1, Some(2), Some("hash_ids")),
            ("bad_type", 1, Some(3), Some("hash_ids: null at position 1")),
            ("negative_value", 1, Some(4), Some("input_tokens: -1")),
            ("empty_path", 1, Some(1), Some("16 tokens")),
        ]
    );
    let error = trace_error(finish(&[batch], &strict(sixteen())));
    assert_eq!((error.code, error.line, error.file.as_str()), ("missing_field", Some(2), "frame"));
}

#[test]
fn floats_and_texts_as_ids() {
    fn batch(values: Values<'_>) -> Batch<'_> {
        let columns =
            vec![("hash_ids", lists(&[0, 1], values)), ("input_length", scalars(Values::I64(&[16])))];
        Batch { rows: 1, columns }
    }
    let code = |value: f64| {
        let values = [value];
        let result = finish(&[batch(Values::F64(&values))], &strict(sixteen()));
        result.map(|trace| numbers(&trace)[0][0]).map_err(|error| trace_error(Err(error)).code)
    };
    assert_eq!(code(7.0), Ok(7));
    assert_eq!(code(-1.0), Ok(u64::MAX));
    assert_eq!(code(1.5), Err("id_not_integer"));
    assert_eq!(code(9_007_199_254_740_992.0), Err("ids_look_rounded"));
    assert_eq!(code(1e300), Err("ids_look_rounded"));
    assert_eq!(code(f64::NAN), Err("not_finite"));
    let trace = finish(&[batch(Values::Text(&["ab"]))], &strict(sixteen())).unwrap();
    assert_eq!(paths(&trace), [[Id::Text("ab")]]);
    let trace = finish(&[batch(Values::Text(&["7"]))], &strict(sixteen())).unwrap();
    assert_eq!(numbers(&trace), [[7]]);
}

#[test]
fn runs_sessions_and_mapped_names() {
    let pairs = [("time", "t_ms"), ("run_start", "start"), ("run_length", "len"), ("session", "file")];
    let options = ReadOptions {
        columns: pairs.iter().map(|&(ours, theirs)| (ours.to_owned(), theirs.to_owned())).collect(),
        scope: Scope::Local,
        namespace: Namespace::Columns(vec!["session".to_owned()]),
        ..sixteen()
    };
    let batch = Batch {
        rows: 2,
        columns: vec![
            ("t_ms", scalars(Values::I64(&[5, 6]))),
            ("input_tokens", scalars(Values::I64(&[48, 32]))),
            ("start", lists(&[0, 2, 3], Values::U32(&[1, 9, 1]))),
            ("len", lists(&[0, 2, 3], Values::U32(&[2, 1, 2]))),
            ("file", scalars(Values::I64(&[1, 2]))),
        ],
    };
    let trace = finish(&[batch.clone(), batch.clone()], &options).unwrap();
    // Sessions on clocks of their own do not restart: each time is where its session says.
    assert_eq!(numbers(&trace), [vec![1, 2, 9], vec![1, 2, 9], vec![1, 2], vec![1, 2]]);
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces), (5, 2));
    let lost = Batch { rows: 2, columns: batch.columns[1..].to_vec() };
    let error = trace_error(finish(&[lost], &options));
    assert_eq!((error.code, error.message.as_str()), ("missing_field", "there is no column t_ms"));
}

#[test]
fn no_rows_is_an_error() {
    assert_eq!(trace_error(finish(&[], &sixteen())).code, "no_rows");
    assert_eq!(trace_error(finish(&[Batch::default()], &sixteen())).code, "no_rows");
}
