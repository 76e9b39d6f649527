//! Plain rows for other tools: one a request, the path as a list of ids.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `arrival_us` | int64 | arrival; missing in a trace without times |
//! | `input_tokens`, `output_tokens` | int64 | lengths; output null where unknown |
//! | `block_tokens` | int64 | tokens per block |
//! | `hash_id_scope`, `trace_id` | text | only where ids are local to something that is no column |
//! | the group columns | text | under our names |
//! | `hash_ids` | list of uint64 | ids of the blocks, root first; texts where any id of the trace is one |
//! | `output_hash_ids` | likewise | ids of the blocks that fill while decoding; only where a request has any |

use crate::arrow::{Table, field};
use crate::native::Columns;
use arrow_array::builder::{ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::{Int64Array, LargeStringArray, ListArray};
use arrow_schema::{DataType, Field};
use kvreplay_core::ingest::{keeps_column, names_namespaces};
use kvreplay_core::trace::{Id, NO_LENGTH, Node, Trace as CoreTrace};
use pyo3::prelude::*;

/// A batch ends when it has this many ids, or rows.
const BATCH_BLOCKS: u64 = 1 << 21;
const BATCH_ROWS: usize = 1 << 16;

/// The rows from request `begin` on, and the request behind them.
pub(crate) fn rows(trace: &CoreTrace, begin: usize) -> PyResult<(Table, usize)> {
    let begin = begin.min(trace.len());
    let mut end = begin;
    let mut blocks = 0;
    while end < trace.len() && end - begin < BATCH_ROWS && (end == begin || blocks < BATCH_BLOCKS) {
        blocks += u64::from(trace.path_len(end));
        end += 1;
    }
    let range = begin..end;
    let requests = &trace.requests;
    let mut columns = Columns::default();
    let number = |values: &mut dyn Iterator<Item = u32>| Int64Array::from_iter_values(values.map(i64::from));
    if let Some(times) = &requests.arrival_us {
        let times = times[range.clone()].iter().copied();
        columns.add(field("arrival_us", DataType::Int64), Int64Array::from_iter_values(times));
    }
    let input = number(&mut requests.input_tokens[range.clone()].iter().copied());
    columns.add(field("input_tokens", DataType::Int64), input);
    let known = |&n: &u32| (n != NO_LENGTH).then_some(i64::from(n));
    let output: Int64Array = requests.output_tokens[range.clone()].iter().map(known).collect();
    columns.add(Field::new("output_tokens", DataType::Int64, true), output);
    let sizes = number(&mut range.clone().map(|request| trace.block_tokens_of(request)));
    columns.add(field("block_tokens", DataType::Int64), sizes);
    let local = names_namespaces(trace);
    if local {
        let namespace = |request: usize| {
            let node = requests.node[request];
            if node.is_empty() { 0 } else { trace.forest.namespace(node.chain) }
        };
        let texts = |text: &dyn Fn(usize) -> String| {
            range.clone().map(|request| Some(text(request))).collect::<LargeStringArray>()
        };
        columns.add(field("hash_id_scope", DataType::LargeUtf8), texts(&|_| "local".to_owned()));
        let names = texts(&|request| format!("namespace {}", namespace(request)));
        columns.add(field("trace_id", DataType::LargeUtf8), names);
    }
    for column in &requests.columns {
        if keeps_column(&column.name) && !(local && column.name == "trace_id") {
            let texts: LargeStringArray = range.clone().map(|request| column.get(request)).collect();
            columns.add(Field::new(&column.name, DataType::LargeUtf8, true), texts);
        }
    }
    columns.add_list("hash_ids", paths(trace, begin, end));
    if let Some(outputs) = &requests.outputs {
        let lists = (begin..end).map(|request| outputs.of(request));
        columns.add_list("output_hash_ids", id_lists(lists, outputs.has_texts()));
    }
    let batch = columns.finish()?;
    Ok((Table::new(batch.schema(), vec![batch]), end))
}

fn paths(trace: &CoreTrace, begin: usize, end: usize) -> ListArray {
    let (forest, ids) = (&trace.forest, &trace.ids);
    let path = |&node: &Node| {
        let mut path = Vec::new();
        forest.path(node, &mut path);
        path.into_iter().map(|block| ids.get(block))
    };
    id_lists(trace.requests.node[begin..end].iter().map(path), ids.has_texts())
}

/// Lists of numbers, or of texts where any id is one.
fn id_lists<'a>(lists: impl Iterator<Item = impl Iterator<Item = Id<'a>>>, texts: bool) -> ListArray {
    let element = |kind: DataType| Field::new("element", kind, false);
    if texts {
        let mut out = ListBuilder::new(StringBuilder::new()).with_field(element(DataType::Utf8));
        for list in lists {
            for id in list {
                match id {
                    Id::Number(number) => out.values().append_value(number.to_string()),
                    Id::Text(text) => out.values().append_value(text),
                }
            }
            out.append(true);
        }
        return out.finish();
    }
    let mut out = ListBuilder::new(UInt64Builder::new()).with_field(element(DataType::UInt64));
    for list in lists {
        for id in list {
            if let Id::Number(number) = id {
                out.values().append_value(number);
            }
        }
        out.append(true);
    }
    out.finish()
}
