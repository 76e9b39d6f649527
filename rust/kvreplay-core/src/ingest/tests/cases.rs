//! The `read` and `strict` checks of the shared case files.

use super::*;
use crate::trace::NO_LENGTH;
use serde_json::Value;

/// Formats that are read elsewhere.
const NOT_HERE: [&str; 1] = ["parquet"];

#[test]
fn read_and_strict_checks() {
    let Some(folder) = shared("cases") else { return };
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let (mut ran, mut failures) = (0, Vec::new());
    for path in names.iter().filter(|path| path.to_string_lossy().ends_with(".expected.json")) {
        let case: Value = serde_json::from_slice(&file_bytes(path)).unwrap();
        let trace = case["trace"].as_str().unwrap();
        if NOT_HERE.iter().any(|end| trace.ends_with(end)) {
            continue;
        }
        for check in case["checks"].as_array().unwrap() {
            let kind = check["kind"].as_str().unwrap();
            if kind != "read" && kind != "strict" {
                continue;
            }
            ran += 1;
            let result = run(kind, &folder.join(trace), check);
            failures.extend(result.err().map(|why| format!("{trace} {kind}: {why}")));
        }
    }
    assert!(ran > 40, "only {ran} checks were found");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn options(kwargs: &Value, kind: &str) -> ReadOptions {
    let mut options = ReadOptions { strict: kind == "strict", ..ReadOptions::default() };
    for (name, value) in kwargs.as_object().into_iter().flatten() {
        match name.as_str() {
            "block_tokens" => options.block_tokens = value.as_u64().map(|n| n as u32),
            "time_unit" => options.set_time_unit(value.as_str().unwrap()).unwrap(),
            "strict" => options.strict = value.as_bool().unwrap(),
            other => panic!("unknown option {other}"),
        }
    }
    options
}

fn run(kind: &str, path: &std::path::Path, check: &Value) -> std::result::Result<(), String> {
    let options = options(&check["kwargs"], kind);
    let result = read(vec![Source::path(path)], &options, &Progress::default());
    if kind == "strict" || check.get("raises").is_some() {
        let error = match result {
            Err(Error::Trace(error)) => error,
            other => return Err(format!("wanted an error, got {other:?}")),
        };
        return same("line", &error.line, &check.get("line").map_or(error.line, Value::as_u64));
    }
    let trace = result.map_err(|error| error.to_string())?;
    for (name, want) in check["info"].as_object().into_iter().flatten() {
        holds(name, &info(&trace, name), want)?;
    }
    for (code, want) in check["quality"].as_object().into_iter().flatten() {
        let position = CODES.iter().position(|c| c.code == code).ok_or("no such code")?;
        let found =
            trace.quality.findings().iter().find(|f| f.code == position).ok_or(format!("no {code}"))?;
        let count = if want.is_number() { want.clone() } else { want["count"].clone() };
        if !count.is_null() {
            holds(code, &Value::from(found.count), &count)?;
        }
        if let Some(line) = want["first_line"].as_u64() {
            same(code, &found.first_line, &Some(line))?;
        }
        for word in want["says"].as_array().into_iter().flatten() {
            let said = found.detail.clone().unwrap_or_default();
            same(code, &said.contains(word.as_str().unwrap()), &true)?;
        }
    }
    for code in check["quality_absent"].as_array().into_iter().flatten() {
        let code = code.as_str().unwrap();
        same(&format!("false alarm {code}"), &trace.quality.count(code), &0)?;
    }
    for name in ["arrival_us", "input_tokens", "output_tokens"] {
        if let Some(want) = check.get(name) {
            holds(name, &per_request(&trace, name), want)?;
        }
    }
    for (request, want) in check["blocks"].as_object().into_iter().flatten() {
        let path = &paths(&trace)[request.parse::<usize>().unwrap()];
        let got = path.iter().map(|id| match id {
            Id::Number(number) => Value::from(*number),
            Id::Text(text) => Value::from(*text),
        });
        holds("blocks", &got.collect(), want)?;
    }
    Ok(())
}

fn info(trace: &Trace, name: &str) -> Value {
    let totals = trace.totals();
    let arrival = trace.requests.arrival_us.as_deref().unwrap_or_default();
    match name {
        "requests" => Value::from(trace.len()),
        "rejected_rows" => Value::from(trace.origin.rejected_rows),
        "block_refs" => Value::from(totals.block_refs),
        "unique_blocks" => Value::from(trace.forest.blocks()),
        "input_tokens" => Value::from(totals.input_tokens),
        "output_tokens" => Value::from(totals.output_tokens),
        "block_tokens" => Value::from(trace.block_tokens),
        "tail" => Value::from(trace.tail.name()),
        "namespaces" => Value::from(trace.origin.namespaces),
        "chained" => Value::from(trace.origin.chained),
        "arrival_first_us" => Value::from(arrival.first().copied()),
        "arrival_last_us" => Value::from(arrival.last().copied()),
        other => panic!("unknown info {other}"),
    }
}

fn per_request(trace: &Trace, name: &str) -> Value {
    let length = |&tokens: &u32| if tokens == NO_LENGTH { Value::Null } else { Value::from(tokens) };
    match name {
        "arrival_us" => trace.requests.arrival_us.clone().into_iter().flatten().map(Value::from).collect(),
        "input_tokens" => trace.requests.input_tokens.iter().map(length).collect(),
        _ => trace.requests.output_tokens.iter().map(length).collect(),
    }
}

fn holds(what: &str, got: &Value, want: &Value) -> std::result::Result<(), String> {
    if want.get("min").is_some() || want.get("max").is_some() {
        let got = got.as_i64().ok_or(format!("{what}: {got}"))?;
        let fits = want["min"].as_i64().is_none_or(|min| got >= min)
            && want["max"].as_i64().is_none_or(|max| got <= max);
        return same(what, &fits, &true);
    }
    same(what, got, want)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, want: &T) -> std::result::Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: got {got:?}, want {want:?}")) }
}
