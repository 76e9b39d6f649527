//! Facts of the public traces, measured by others before this reader existed.

use super::*;

#[test]
fn mooncake_conversation_and_synthetic() {
    let Some(folder) = shared("traces") else { return };
    for (file, requests, refs, unique, input, output, last_ms, ties) in [
        ("conversation_trace.jsonl", 12_031, 288_500, 182_790, 144_793_823, 4_122_048, 3_536_999, 10_851),
        ("synthetic_trace.jsonl", 3_993, 121_877, 43_924, 61_194_628, 595_432, 1_022_025, 11),
    ] {
        let trace = read(
            vec![Source::path(folder.join(file))],
            &strict(ReadOptions::default()),
            &Progress::default(),
        )
        .unwrap();
        let totals = trace.totals();
        assert_eq!(
            (trace.len(), totals.block_refs, trace.forest.blocks()),
            (requests, refs, unique),
            "{file}"
        );
        assert_eq!((totals.input_tokens, totals.output_tokens), (input, output), "{file}");
        assert_eq!((trace.block_tokens, trace.tail.name()), (512, "ceil"), "{file}");
        assert_eq!((trace.origin.chained, trace.origin.rejected_rows), (true, 0), "{file}");
        let last_us = trace.requests.arrival_us.as_ref().and_then(|times| times.last().copied());
        assert_eq!(last_us, Some(last_ms * 1_000), "{file}");
        let codes: Vec<_> = findings(&trace).iter().map(|f| (f.0, f.1)).collect();
        assert_eq!(codes, [("time_ties", ties)], "{file}");
    }
}

#[test]
fn every_small_file_is_read_or_refused() {
    let Some(folder) = shared("traces/small") else { return };
    let mut open = vec![folder];
    let mut seen = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            seen += 1;
            if let Err(error) = read(vec![Source::path(&path)], &ReadOptions::default(), &Progress::default())
            {
                let Error::Trace(error) = error else { panic!("{error}") };
                assert!(!error.hint.is_empty() && !error.message.is_empty(), "{error:?}");
            }
        }
    }
    assert!(seen > 10);
}
