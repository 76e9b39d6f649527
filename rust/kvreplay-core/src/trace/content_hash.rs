//! A name for the content of a trace, whatever container it came in.

use super::{Column, Id, OutputIds, Trace};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Bumped when the canonical form below changes.
const FORM: &[u8] = b"kvreplay trace 1\n";

/// SHA-256 over the canonical form: lengths, times, paths, ids and columns in replay order.
///
/// Paths are hashed as nodes of the forest: dense numbers follow the order of first appearance, so equal
/// requests give equal forests. Format name and quality are not part of the content.
pub(super) fn sha256(trace: &Trace) -> String {
    let mut hash = Sha256::new();
    hash.update(FORM);
    number(&mut hash, u64::from(trace.block_tokens));
    hash.update(trace.tail.name());
    let requests = &trace.requests;
    u32s(&mut hash, requests.node.iter().flat_map(|n| [n.chain, n.len]));
    number(&mut hash, u64::from(requests.arrival_us.is_some()));
    u64s(&mut hash, requests.arrival_us.iter().flatten().map(|&t| t as u64));
    u32s(&mut hash, requests.input_tokens.iter().copied());
    u32s(&mut hash, requests.output_tokens.iter().copied());
    u32s(&mut hash, requests.block_tokens.iter().copied());
    for column in &requests.columns {
        column_into(&mut hash, column);
    }
    let forest = &trace.forest;
    u32s(&mut hash, forest.start.iter().copied());
    u32s(&mut hash, forest.parent.iter().flat_map(|n| [n.chain, n.len]));
    u32s(&mut hash, namespaces(&forest.namespace).into_iter());
    u32s(&mut hash, trace.ids.run_iter().map(|(block, _)| block));
    u64s(&mut hash, trace.ids.run_iter().map(|(_, id)| id));
    if trace.ids.has_texts() {
        for block in (0..forest.blocks()).filter(|&b| trace.ids.is_text(b)) {
            number(&mut hash, u64::from(block));
        }
        let texts = trace.ids.texts();
        for n in 0..texts.len() as u32 {
            text(&mut hash, texts.get(n));
        }
    }
    if let Some(outputs) = &requests.outputs {
        outputs_into(&mut hash, outputs, &forest.namespace);
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        for digit in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
        hex
    })
}

/// Namespaces numbered by first appearance among the chains, none where there is only one: readers number them in
/// the order of the file, which is not part of the content.
fn namespaces(per_chain: &[u32]) -> Vec<u32> {
    if per_chain.iter().all(|namespace| Some(namespace) == per_chain.first()) {
        return Vec::new();
    }
    let mut known = BTreeMap::new();
    let number = |namespace: &u32| {
        let fresh = known.len() as u32;
        *known.entry(*namespace).or_insert(fresh)
    };
    per_chain.iter().map(number).collect()
}

/// Only where a trace has output ids, so that all other traces keep their hashes.
fn outputs_into(hash: &mut Sha256, outputs: &OutputIds, per_chain: &[u32]) {
    text(hash, "outputs");
    let all = 0..outputs.requests();
    u32s(hash, all.clone().map(|request| outputs.count(request)));
    for id in all.clone().flat_map(|request| outputs.of(request)) {
        match id {
            Id::Number(id) => number(hash, id),
            Id::Text(id) => text(hash, id),
        }
    }
    let is_text = |id| u32::from(matches!(id, Id::Text(_)));
    u32s(hash, all.clone().flat_map(|request| outputs.of(request)).map(is_text));
    let listed = all.filter(|&request| outputs.count(request) > 0).map(|r| outputs.namespace(r));
    let known = if per_chain.is_empty() { &[0][..] } else { per_chain };
    let both: Vec<u32> = known.iter().copied().chain(listed).collect();
    u32s(hash, namespaces(&both).into_iter().skip(known.len()));
}

fn column_into(hash: &mut Sha256, column: &Column) {
    text(hash, &column.name);
    u32s(hash, column.codes.iter().copied());
    for code in 0..column.texts.len() as u32 {
        text(hash, column.texts.get(code));
    }
}

fn number(hash: &mut Sha256, value: u64) {
    hash.update(value.to_le_bytes());
}

fn text(hash: &mut Sha256, value: &str) {
    number(hash, value.len() as u64);
    hash.update(value);
}

/// Little-endian words through a small buffer, behind their count.
fn u32s(hash: &mut Sha256, values: impl Iterator<Item = u32>) {
    words(hash, values.map(u32::to_le_bytes));
}

fn u64s(hash: &mut Sha256, values: impl Iterator<Item = u64>) {
    words(hash, values.map(u64::to_le_bytes));
}

fn words<const N: usize>(hash: &mut Sha256, values: impl Iterator<Item = [u8; N]>) {
    let mut buffer = Vec::with_capacity(1 << 14);
    let mut count = 0_u64;
    for value in values {
        buffer.extend_from_slice(&value);
        count += 1;
        if buffer.len() + N > 1 << 14 {
            hash.update(&buffer);
            buffer.clear();
        }
    }
    hash.update(&buffer);
    number(hash, count);
}
