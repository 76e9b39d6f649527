//! Traces without blocks: refused for hits, read for their lengths.

use super::*;

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109";
const BURST: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n";

fn lengths(text: &str) -> Result<Vec<LengthRow>> {
    read_lengths(vec![source("t", text)], &ReadOptions::default(), &Progress::default())
}

fn row(arrival_us: i64, input_tokens: u32, output_tokens: Option<u32>) -> LengthRow {
    LengthRow { arrival_us: Some(arrival_us), input_tokens, output_tokens }
}

#[test]
fn hits_need_blocks() {
    let rows = "{\"timestamp\":1,\"input_length\":5}\n{\"timestamp\":2,\"input_length\":5}\n";
    let array = "[{\"timestamp\":1,\"input_length\":5}]";
    for text in [AZURE, BURST, rows, array, "time,in\n1,5\n"] {
        let error = read_err(text, &ReadOptions::default());
        assert_eq!((error.code, error.line), ("missing_field", Some(1)), "{text}");
        assert!(error.hint.contains("generate --lengths-from"), "{}", error.hint);
    }
    // Where other things are wrong as well, they are the answer.
    let error = read_err(format!("{rows}7\n"), &ReadOptions::default());
    assert_eq!(error.code, "no_rows");
}

#[test]
fn lengths_of_azure_and_burst_gpt() {
    let first = 1_700_158_546_680_590;
    assert_eq!(lengths(AZURE).unwrap(), [row(first, 374, Some(44)), row(first + 4_314_579, 396, Some(109))]);
    assert_eq!(lengths(BURST).unwrap(), [row(5_000_000, 472, Some(18)), row(45_000_000, 1087, Some(0))]);
}

#[test]
fn lengths_of_any_rows() {
    let text = "{\"timestamp\":2,\"input_length\":70,\"hash_ids\":[1,2]}\n{\"timestamp\":1,\"input_length\":5,\"output_length\":7}\n{\"timestamp\":3}\n";
    assert_eq!(lengths(text).unwrap(), [row(1_000, 5, Some(7)), row(2_000, 70, None)]);
    let untimed = lengths("{\"input_length\":5}\n").unwrap();
    assert_eq!(untimed, [LengthRow { arrival_us: None, input_tokens: 5, output_tokens: None }]);
    assert_eq!(trace_error(lengths("{\"a\":5}\n").map(|_| unreachable!())).code, "no_rows");
}
