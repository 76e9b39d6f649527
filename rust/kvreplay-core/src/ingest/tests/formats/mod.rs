//! Every format with fixtures of its own: exact contents, detection, and what is said about the traps.

mod delta_twin;
mod dynamo;
mod fuzz;
mod lengths;
mod sessions;
mod tokens;
mod turns;
mod weka;

use super::*;

/// Named and detected reading give the same trace, in the format expected.
#[track_caller]
fn read_as(format: &str, text: &str, options: &ReadOptions) -> Trace {
    let named = ReadOptions { format: format.to_owned(), ..options.clone() };
    let trace = read_ok(text, &named);
    assert_eq!(trace.origin.format, format);
    let detected = read_ok(text, options);
    assert_eq!(detected.origin.format, format, "as detected");
    assert_eq!(detected.sha256(), trace.sha256());
    assert_eq!(detected.quality, trace.quality);
    trace
}

/// The detail of a finding.
#[track_caller]
fn detail<'a>(trace: &'a Trace, code: &str) -> &'a str {
    let found = trace.quality.findings().iter().find(|f| CODES[f.code].code == code).expect(code);
    found.detail.as_deref().unwrap_or("")
}

#[test]
fn every_example_is_read_by_its_format() {
    for info in formats() {
        assert!(!info.doc.is_empty() && !info.source.is_empty(), "{}", info.name);
        if ["csv", "arrow", "native", "oracle_general"].contains(&info.name) {
            continue;
        }
        let example = match info.name {
            // Agentic rows come behind a header, and wait for a row that the example does not show.
            "dynamo_agentic" => format!(
                "{{\"schema\":\"dynamo.agentic_mooncake\",\"version\":2,\"block_size\":16}}\n{}",
                info.example
            ),
            _ => info.example.to_owned(),
        };
        let trace = read_ok(example.as_str(), &ReadOptions::default());
        assert_eq!((trace.origin.format.as_str(), trace.len()), (info.name, 1));
    }
    let names: Vec<&str> = formats().iter().map(|info| info.name).collect();
    let want = [
        "mooncake",
        "json_array",
        "csv",
        "weka",
        "dynamo_request_trace",
        "dynamo_agentic",
        "lmcache_lookup_log",
        "bailian",
        "token_ids",
        "oracle_general",
        "arrow",
        "native",
    ];
    assert_eq!(names, want);
}

#[test]
fn formats_that_others_read_say_so() {
    for format in ["arrow", "native"] {
        let options = ReadOptions { format: format.to_owned(), ..ReadOptions::default() };
        let error = try_read("{}", &options).unwrap_err();
        assert!(matches!(&error, Error::Config { message, .. } if message.contains(format)), "{error:?}");
    }
}

/// The fixtures of other projects: formats as detected, and the number of requests.
#[test]
fn small_files_of_other_projects() {
    let Some(folder) = shared("traces/small") else { return };
    for (file, format, requests) in [
        ("dynamo/mooncake.jsonl", "mooncake", 2),
        ("dynamo/mooncake-delta.jsonl", "mooncake", 2),
        ("dynamo/agentic-mooncake.jsonl", "dynamo_agentic", 3),
        ("dynamo/dynamo-standard.jsonl", "dynamo_request_trace", 2),
        ("dynamo/dynamo-agentic.jsonl", "dynamo_request_trace", 4),
        ("mooncake/mooncake_tiny.jsonl", "mooncake", 16),
        ("weka/trace_01_n1.json", "weka", 1),
        ("weka/trace_10_n10.json", "weka", 10),
        ("openanolis/openanolis_sample_benchmark_result.jsonl", "mooncake", 1),
    ] {
        let trace = read_ok(file_bytes(&folder.join(file)), &ReadOptions::default());
        assert_eq!((trace.origin.format.as_str(), trace.len()), (format, requests), "{file}");
    }
    for file in [
        "dynamo/applied-compute-agentic.jsonl",
        "openanolis/openanolis_sample_lmsys_chat_1m.jsonl",
        "openanolis/openanolis_sample_sharegpt_style.jsonl",
        "tracelab/tracelab_round_trace.jsonl",
        "tracelab/tracelab_replay_multi_session_large.csv",
    ] {
        let error = read_err(file_bytes(&folder.join(file)), &ReadOptions::default());
        assert!(["no_rows", "missing_field"].contains(&error.code), "{file}: {error:?}");
        assert!(!error.hint.is_empty());
    }
}
