//! What requests say about each other: logged twice, cumulative or delta turns, clocks that disagree.

use super::notes::{Notes, Places};
use crate::trace::{Column, Forest, NO_CODE, Node, Requests};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The requests in replay order, with where each of them stands.
pub(crate) struct Settled<'a> {
    pub(crate) requests: &'a Requests,
    pub(crate) forest: &'a Forest,
    /// File row of each request; `None` = the same.
    pub(crate) order: Option<&'a [u32]>,
    pub(crate) places: &'a Places,
}

impl Settled<'_> {
    /// File row of a request.
    fn row(&self, request: usize) -> u32 {
        self.order.map_or(request as u32, |order| order[request])
    }

    /// Notes a code for some requests; the first in the file is named.
    fn mention(&self, notes: &mut Notes, code: &str, found: &[usize], value: impl Fn(usize) -> String) {
        if let Some(&first) = found.iter().min_by_key(|&&request| self.row(request)) {
            let place = self.places.get(self.row(first));
            notes.mention(code, found.len() as u64, Some(place), Some(&value(first)));
        }
    }

    fn column(&self, name: &str) -> Option<&Column> {
        self.requests.columns.iter().find(|column| column.name == name)
    }

    /// Notes rows that equal an earlier row of the same request id in every field.
    pub(crate) fn duplicates(&self, notes: &mut Notes) {
        let Some(ids) = self.column("request_id") else { return };
        let mut named: Vec<usize> = (0..ids.codes.len()).filter(|&r| ids.codes[r] != NO_CODE).collect();
        if named.len() == ids.texts.len() {
            return;
        }
        named.sort_unstable_by(|&a, &b| {
            ids.codes[a]
                .cmp(&ids.codes[b])
                .then_with(|| self.compare(a, b))
                .then(self.row(a).cmp(&self.row(b)))
        });
        let equal = |pair: &&[usize]| {
            ids.codes[pair[0]] == ids.codes[pair[1]] && self.compare(pair[0], pair[1]) == Ordering::Equal
        };
        let again: Vec<usize> = named.windows(2).filter(equal).map(|pair| pair[1]).collect();
        self.mention(notes, "duplicate_request", &again, |r| ids.get(r).unwrap_or("").to_owned());
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let r = self.requests;
        let time = |at: usize| r.arrival_us.as_ref().map(|times| times[at]);
        let key = |at: usize| {
            let block_tokens = r.block_tokens.get(at);
            (
                time(at),
                r.input_tokens[at],
                r.output_tokens[at],
                block_tokens,
                r.node[at].chain,
                r.node[at].len,
            )
        };
        key(a).cmp(&key(b)).then_with(|| {
            let columns = r.columns.iter().map(|column| column.codes[a].cmp(&column.codes[b]));
            columns
                .fold(Ordering::Equal, Ordering::then)
                .then_with(|| r.outputs.as_ref().map_or(Ordering::Equal, |outputs| outputs.compare(a, b)))
        })
    }

    /// Notes turns that arrive before the turn they follow (`parent` names a `request_id`).
    pub(crate) fn skew(&self, notes: &mut Notes) {
        let (Some(ids), Some(parents), Some(times)) =
            (self.column("request_id"), self.column("parent"), &self.requests.arrival_us)
        else {
            return;
        };
        let by_id = requests_by_text(ids);
        let early = |request: &usize| {
            let parent = parents.get(*request).and_then(|text| by_id.get(text));
            parent.is_some_and(|&parent| times[*request] < times[parent])
        };
        let found: Vec<usize> = (0..times.len()).filter(early).collect();
        self.mention(notes, "clock_skew", &found, |r| parents.get(r).unwrap_or("").to_owned());
    }

    /// Compares the turns of every session: does a row hold the history, only its new part, or a new start?
    pub(crate) fn turns(&self, notes: &mut Notes) {
        let Some(sessions) = self.column("session") else { return };
        let mut before = vec![None::<usize>; sessions.texts.len()];
        // Agents of one session do not follow each other's turns.
        let agents = self.column("agent");
        let mut of_agents = BTreeMap::new();
        let (mut whole, mut apart, mut reset) = (Vec::new(), Vec::new(), Vec::new());
        for request in 0..sessions.codes.len() {
            let code = sessions.codes[request];
            if code == NO_CODE {
                continue;
            }
            let earlier = match agents.map(|agents| agents.codes[request]) {
                None | Some(NO_CODE) => before[code as usize].replace(request),
                Some(agent) => of_agents.insert((code, agent), request),
            };
            if let Some(earlier) = earlier {
                match self.turn(earlier, request) {
                    Turn::Whole => whole.push(request),
                    Turn::Apart => apart.push(request),
                    Turn::Reset => reset.push(request),
                    Turn::Unknown => {}
                }
            }
        }
        let name = |r: usize| sessions.get(r).unwrap_or("").to_owned();
        self.mention(notes, "cumulative_rows", &whole, name);
        if apart.len() > whole.len() {
            self.mention(notes, "delta_rows", &apart, name);
        } else {
            reset.append(&mut apart);
        }
        self.mention(notes, "session_reset", &reset, name);
    }

    fn turn(&self, earlier: usize, later: usize) -> Turn {
        let (a, b) = (self.requests.node[earlier], self.requests.node[later]);
        let (had, has) = (self.forest.path_len(a), self.forest.path_len(b));
        if had == 0 || has == 0 {
            return Turn::Unknown;
        }
        let shared = common(self.forest, a, b);
        // The last block of a turn may be partial, and then changes its id in the next.
        if shared > 0 && shared + 1 >= had && has >= had {
            Turn::Whole
        } else if shared == 0 && had > 1 {
            Turn::Apart
        } else if shared == 0 {
            if self.requests.input_tokens[later] < self.requests.input_tokens[earlier] {
                Turn::Apart
            } else {
                Turn::Unknown
            }
        } else if self.requests.input_tokens[later] < self.requests.input_tokens[earlier] {
            Turn::Reset
        } else {
            Turn::Unknown
        }
    }
}

enum Turn {
    Whole,
    Apart,
    Reset,
    Unknown,
}

/// The first request of each id.
fn requests_by_text(ids: &Column) -> BTreeMap<&str, usize> {
    let mut by_id = BTreeMap::new();
    for request in 0..ids.codes.len() {
        if let Some(text) = ids.get(request) {
            by_id.entry(text).or_insert(request);
        }
    }
    by_id
}

/// Number of blocks two paths share.
pub(crate) fn common(forest: &Forest, a: Node, b: Node) -> u32 {
    let (mut a, mut b) = (a, b);
    // Numbers of chains rise away from the root, so the larger one cannot be above the other.
    while !a.is_empty() && !b.is_empty() {
        match a.chain.cmp(&b.chain) {
            Ordering::Equal => return forest.depth(a.chain) + a.len.min(b.len),
            Ordering::Greater => a = forest.parent(a.chain),
            Ordering::Less => b = forest.parent(b.chain),
        }
    }
    0
}

/// A chat tree (`chat_id` with `parent_chat_id`) in our terms: the chat is the request, its root the session.
///
/// Without a parent column `chat_id` names the session.
pub(crate) fn name_chats(columns: &mut Vec<Column>) {
    let Some(chats) = columns.iter().position(|column| column.name == "chat_id") else { return };
    let at = |name: &str| {
        columns.iter().position(|c| c.name == name && c.codes.iter().any(|&code| code != NO_CODE))
    };
    let (parents, sessions, requests) = (at("parent"), at("session"), at("request_id"));
    let Some(parents) = parents else {
        if sessions.is_none() {
            columns.retain(|column| column.name != "session");
            rename(columns, "chat_id", "session");
        }
        return;
    };
    if sessions.is_none() {
        let session = roots(&columns[chats], &columns[parents]);
        columns.retain(|column| column.name != "session");
        columns.push(session);
    }
    if requests.is_none() {
        columns.retain(|column| column.name != "request_id");
        rename(columns, "chat_id", "request_id");
    }
}

fn rename(columns: &mut [Column], from: &str, to: &str) {
    if let Some(column) = columns.iter_mut().find(|column| column.name == from) {
        to.clone_into(&mut column.name);
    }
}

/// The root of every row's chat. A parent outside the file, or one that leads back in a circle, ends the walk.
fn roots(chats: &Column, parents: &Column) -> Column {
    let mut parent_of = vec![NO_CODE; chats.texts.len()];
    let codes: BTreeMap<&str, u32> = (0..chats.texts.len() as u32).map(|c| (chats.texts.get(c), c)).collect();
    for row in 0..chats.codes.len() {
        let parent = parents.get(row).and_then(|text| codes.get(text)).copied().unwrap_or(NO_CODE);
        if chats.codes[row] != NO_CODE && parent_of[chats.codes[row] as usize] == NO_CODE {
            parent_of[chats.codes[row] as usize] = parent;
        }
    }
    let mut root_of = vec![NO_CODE; parent_of.len()];
    let mut walk = Vec::new();
    let mut on_walk = vec![false; parent_of.len()];
    for chat in 0..parent_of.len() as u32 {
        let mut at = chat;
        while root_of[at as usize] == NO_CODE && parent_of[at as usize] != NO_CODE && !on_walk[at as usize] {
            on_walk[at as usize] = true;
            walk.push(at);
            at = parent_of[at as usize];
        }
        let root = if root_of[at as usize] == NO_CODE { at } else { root_of[at as usize] };
        root_of[at as usize] = root;
        for step in walk.drain(..) {
            root_of[step as usize] = root;
            on_walk[step as usize] = false;
        }
    }
    let mut out = Column::new("session", 0);
    for &code in &chats.codes {
        out.push((code != NO_CODE).then(|| chats.texts.get(root_of[code as usize])));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ForestBuilder, Kinds};

    #[test]
    fn shared_blocks_of_two_paths() {
        let mut builder = ForestBuilder::new();
        let mut node = |ids: &[u64]| builder.push(0, ids, Kinds::Numbers).unwrap();
        let nodes =
            [node(&[1, 2, 3, 4]), node(&[1, 2, 5]), node(&[1, 2, 5, 6]), node(&[9]), node(&[1]), node(&[])];
        let (forest, _) = builder.finish();
        let table: Vec<Vec<u32>> =
            nodes.iter().map(|&a| nodes.iter().map(|&b| common(&forest, a, b)).collect()).collect();
        let want: [[u32; 6]; 6] = [
            [4, 2, 2, 0, 1, 0],
            [2, 3, 3, 0, 1, 0],
            [2, 3, 4, 0, 1, 0],
            [0, 0, 0, 1, 0, 0],
            [1, 1, 1, 0, 1, 0],
            [0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(table, want);
    }

    #[test]
    fn chats_become_requests_and_sessions() {
        let column = |name: &str, values: &[Option<&str>]| {
            let mut column = Column::new(name, 0);
            for value in values {
                column.push(*value);
            }
            column
        };
        // 3 -> 2 -> 1; 9 lies outside the file; 5 and 6 are each other's parent.
        let chats = [Some("1"), Some("2"), Some("3"), Some("4"), Some("5"), Some("6"), None];
        let parents = [Some("-1"), Some("1"), Some("2"), Some("9"), Some("6"), Some("5"), None];
        let mut columns = vec![column("chat_id", &chats), column("parent", &parents)];
        name_chats(&mut columns);
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["request_id", "parent", "session"]);
        let sessions: Vec<_> = (0..7).map(|row| columns[2].get(row)).collect();
        assert_eq!(sessions, [Some("1"), Some("1"), Some("1"), Some("4"), Some("5"), Some("5"), None]);
        let mut columns = vec![column("chat_id", &chats)];
        name_chats(&mut columns);
        assert_eq!(columns[0].name, "session");
    }
}
