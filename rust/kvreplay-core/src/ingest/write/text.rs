//! JSON as the writers need it.

use crate::trace::{Forest, Id, IdTable, Node};
use std::io::{self, Write};

/// A JSON string.
pub(super) fn text(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// The ids of a path as a JSON list, numbers and texts as given. `path` is a buffer.
pub(super) fn ids(
    forest: &Forest,
    ids: &IdTable,
    node: Node,
    path: &mut Vec<u32>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    forest.path(node, path);
    list(path.iter().map(|&block| ids.get(block)), out)
}

/// Ids as a JSON list.
pub(super) fn list<'a>(ids: impl Iterator<Item = Id<'a>>, out: &mut Vec<u8>) -> io::Result<()> {
    out.push(b'[');
    for (at, id) in ids.enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        match id {
            Id::Number(number) => write!(out, "{number}")?,
            Id::Text(id) => text(out, id),
        }
    }
    out.push(b']');
    Ok(())
}
