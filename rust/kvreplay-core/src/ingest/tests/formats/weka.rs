//! Sessions of coding agents: local ids, nested sub-agents, starts, shared prefixes.

use super::*;

const SESSION: &str = r#"{
  "id": "s1", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "tool_tokens": 100, "system_tokens": 28,
  "requests": [
    {"t": 0.0, "type": "n", "model": "m", "in": 200, "out": 30, "hash_ids": [1, 2, 3], "input_types": ["text"], "stop": "end_turn"},
    {"t": 9.25, "agent_id": "a1", "subagent_type": "Explore", "duration_ms": 4250, "status": "completed", "tool_tokens": 64, "system_tokens": 0,
     "requests": [
       {"t": 0.0, "type": "n", "model": "m", "in": 130, "out": 5, "hash_ids": [90, 91]},
       {"t": 2.5, "type": "n", "model": "m", "in": 192, "out": 6, "hash_ids": [90, 91, 92]}
     ]},
    {"t": 10.5, "type": "n", "model": "m", "in": 256, "out": 40, "hash_ids": [1, 2, 3, 4]}
  ],
  "totals": {"requests": 4}
}
"#;

fn other(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","models":["m"],"block_size":64,"tool_tokens":100,"system_tokens":28,"requests":[{{"t":1.5,"type":"n","model":"m","in":192,"out":1,"hash_ids":[1,2,9]}}]}}"#
    )
}

fn two(options: &ReadOptions) -> Trace {
    let sources = vec![source("dir/s1.json", SESSION), source("dir/s2.json", other("s2"))];
    read(sources, options, &Progress::default()).unwrap()
}

#[test]
fn a_session_with_a_sub_agent() {
    let trace = read_as("weka", SESSION, &ReadOptions::default());
    assert_eq!(numbers(&trace), [vec![1, 2, 3], vec![90, 91], vec![90, 91, 92], vec![1, 2, 3, 4]]);
    // The sub-agent was done at 9.25 s after 4.25 s: it began at 5 s, and its own times count from there.
    assert_eq!(trace.requests.arrival_us, Some(vec![0, 5_000_000, 7_500_000, 10_500_000]));
    assert_eq!(trace.requests.input_tokens, [200, 130, 192, 256]);
    assert_eq!(trace.requests.output_tokens, [30, 5, 6, 40]);
    assert_eq!((trace.block_tokens, trace.tail), (64, crate::trace::Tail::Floor));
    assert_eq!(column(&trace, "session"), [Some("s1"); 4]);
    assert_eq!(column(&trace, "agent"), [None, Some("a1"), Some("a1"), None]);
    assert_eq!(column(&trace, "type"), [Some("n"); 4]);
    assert_eq!(column(&trace, "model"), [Some("m"); 4]);
    let mut codes = findings(&trace);
    codes.retain(|f| !["cumulative_rows", "session_reset"].contains(&f.0));
    assert_eq!(codes, [("local_scope", 4, Some(4), None)]);
    assert!(
        detail(&trace, "local_scope").starts_with("sessions without a start of their own: 1, begun together")
    );
}

#[test]
fn lines_name_the_request() {
    let bad = SESSION.replace("\"hash_ids\": [90, 91]}", "\"hash_ids\": [90, null]}");
    let trace = read_ok(bad.as_str(), &ReadOptions::default());
    assert_eq!(findings(&trace)[0], ("bad_type", 1, Some(7), Some("hash_ids: null")));
    assert_eq!(read_err(bad, &strict(ReadOptions::default())).line, Some(7));
}

#[test]
fn a_sub_agent_is_never_placed_before_its_session() {
    let text = |t: &str, duration: &str| {
        format!(
            r#"{{"id":"s","block_size":64,"requests":[{{"t":{t},"agent_id":"a","duration_ms":{duration},"requests":[{{"t":1.0,"in":64,"hash_ids":[5]}}]}}]}}"#
        )
    };
    let at = |t: &str, duration: &str| {
        read_ok(text(t, duration), &ReadOptions::default()).requests.arrival_us.unwrap()[0]
    };
    assert_eq!(at("3.0", "1000"), 3_000_000);
    assert_eq!(at("3.0", "9000"), 1_000_000);
    assert_eq!(at("3.0", "null"), 4_000_000);
    assert_eq!(at("3.0", "500.5"), 3_499_500);
}

#[test]
fn ids_are_local_to_the_session() {
    let trace = two(&ReadOptions::default());
    // Two sessions, five and three blocks of the main agents, three of the sub-agent.
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces), (4 + 3 + 3, 2));
    let mut all = ReadOptions::default();
    all.set_scope("global").unwrap();
    assert_eq!(two(&all).forest.blocks(), 5 + 3);
    // A session of the same name is another one.
    let sources = vec![source("a", other("x")), source("b", other("x")), source("c", other("x#2"))];
    let trace = read(sources, &ReadOptions::default(), &Progress::default()).unwrap();
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces), (9, 3));
    assert_eq!(column(&trace, "session"), [Some("x"), Some("x#2"), Some("x#2#2")]);
    // Without an id the file names the session.
    let text = other("x").replace("\"id\":\"x\",", "");
    let trace = read(vec![source("dir/trace_07.json", text)], &ReadOptions::default(), &Progress::default());
    assert_eq!(column(&trace.unwrap(), "session"), [Some("trace_07")]);
}

#[test]
fn several_sessions_in_one_file() {
    let lines = format!("{}\n{}\n", other("a"), other("b"));
    let trace = read_as("weka", &lines, &ReadOptions::default());
    assert_eq!(column(&trace, "session"), [Some("a"), Some("b")]);
    let pretty = format!("{SESSION}{SESSION}");
    assert_eq!(read_ok(pretty, &ReadOptions::default()).len(), 8);
    let junk = format!("{}\nhello\n{}\n", other("a"), other("b"));
    let trace = read_ok(junk, &ReadOptions::default());
    assert_eq!((trace.len(), findings(&trace)[0]), (2, ("not_an_object", 1, Some(2), Some("hello"))));
}

#[test]
fn starts_are_the_callers_choice() {
    let times = |rule: &str, concurrency: Option<u32>| {
        let mut options = ReadOptions::default();
        options.sessions.set_rule(rule).unwrap();
        options.sessions.concurrency = concurrency;
        let trace = two(&options);
        let times = trace.requests.arrival_us.clone().unwrap();
        let sessions = column(&trace, "session");
        times.into_iter().zip(sessions).map(|(t, s)| (t, s.unwrap().to_owned())).collect::<Vec<_>>()
    };
    let of_two = |times: Vec<(i64, String)>| times.into_iter().find(|(_, s)| s == "s2").unwrap().0;
    assert_eq!(of_two(times("together", None)), 1_500_000);
    assert_eq!(of_two(times("every(1m)", None)), 61_500_000);
    // One at a time: the second begins with the last request of the first.
    assert_eq!(of_two(times("together", Some(1))), 10_500_000 + 1_500_000);
    let drawn = times("uniform(8h)", None);
    assert_eq!(drawn, times("uniform(8h)", None));
    assert_ne!(of_two(drawn), of_two(times("together", None)));
    let options = ReadOptions {
        sessions: SessionStarts { concurrency: Some(0), ..SessionStarts::default() },
        ..ReadOptions::default()
    };
    assert!(matches!(try_read(SESSION, &options), Err(Error::Config { .. })));
}

#[test]
fn a_shared_prefix_of_tools_and_system() {
    let mut options = ReadOptions::default();
    options.set_shared_prefix("tool+system").unwrap();
    let trace = two(&options);
    let (shared, first, second) = (1_u64 << 63, 1_u64 << 32, 2_u64 << 32);
    // 128 tokens are two blocks; the sub-agent has one of its kind.
    let agent = shared | 1 << 32;
    let want = [
        vec![shared, shared | 1, first | 3],
        vec![shared, shared | 1, second | 9],
        vec![agent, first + 91],
        vec![agent, first + 91, first + 92],
        vec![shared, shared | 1, first | 3, first | 4],
    ];
    assert_eq!(numbers(&trace), want);
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces), (8, 1));
    assert!(trace.origin.chained);
    assert!(detail(&trace, "local_scope").contains("tool+system"), "{}", detail(&trace, "local_scope"));
    // Another model shares nothing.
    let other_model = other("s2").replace("\"model\":\"m\"", "\"model\":\"n\"");
    let sources = vec![source("a", SESSION), source("b", other_model)];
    let trace = read(sources, &options, &Progress::default()).unwrap();
    assert_eq!((trace.forest.blocks(), trace.origin.namespaces), (10, 2));
    // A prompt that begins otherwise than the session's first one shares nothing either.
    let text = SESSION.replace("[1, 2, 3, 4]", "[7, 2, 3, 4]");
    let trace = read_ok(text, &options);
    assert_eq!(numbers(&trace)[3], [first | 7, first | 2, first | 3, first | 4]);
    // Ids of more than 32 bits, and texts, become texts of their session.
    let text = other("s9").replace("[1,2,9]", "[1,2,99999999999]");
    assert_eq!(paths(&read_ok(text, &options))[0][2], Id::Text("s9/99999999999"));
    options.set_scope("global").unwrap();
    assert!(matches!(try_read(SESSION, &options), Err(Error::Config { .. })));
}

#[test]
fn cut_at_every_byte() {
    let whole = read_ok(SESSION, &ReadOptions::default());
    let (paths, times) = (numbers(&whole), whole.requests.arrival_us.clone().unwrap());
    let end = SESSION.trim_end().len();
    for cut in 1..end {
        let options = ReadOptions { format: "weka".to_owned(), ..ReadOptions::default() };
        match try_read(&SESSION.as_bytes()[..cut], &options) {
            Err(Error::Trace(error)) => assert!(["no_rows", "missing_field"].contains(&error.code), "{cut}"),
            Err(error) => panic!("{error}"),
            Ok(trace) => {
                assert_eq!(trace.quality.count("truncated_last_line"), 1, "cut {cut}");
                assert_eq!(numbers(&trace), paths[..trace.len()], "cut {cut}");
                assert_eq!(trace.requests.arrival_us, Some(times[..trace.len()].to_vec()), "cut {cut}");
            }
        }
    }
    assert_eq!(read_ok(&SESSION.as_bytes()[..end], &ReadOptions::default()).sha256(), whole.sha256());
}

#[test]
fn a_directory_of_tiny_sessions() {
    let Some(folder) = shared("traces/small/weka") else { return };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let trace = read(files.iter().map(Source::path).collect(), &ReadOptions::default(), &Progress::default());
    let trace = trace.unwrap();
    assert_eq!((trace.len(), trace.origin.namespaces, trace.block_tokens), (55, 10, 64));
    assert_eq!(trace.quality.count("time_restart"), 0);
    assert_eq!(trace.quality.count("local_scope"), 55);
    assert!(trace.quality.count("length_mismatch") > 0);
}
