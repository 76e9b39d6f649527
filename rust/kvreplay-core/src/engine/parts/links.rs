//! Doubly linked lists whose links lie in one array: moving a node costs a few stores and no allocation.
//!
//! Engines keep their orders as linked lists or ordered maps and move single entries in the middle; a queue
//! in a ring of slots could not insert there.

/// Rings of nodes. The first nodes are the ends of the lists and never move; the others are in one list
/// or, alone, in none.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    /// Previous (older) and next (newer) node.
    ring: Vec<[u32; 2]>,
    lists: u32,
}

impl Links {
    /// `lists` empty lists, whose names are `0..lists`, and `nodes` nodes after them.
    #[must_use]
    pub(crate) fn new(lists: u32, nodes: u32) -> Self {
        Self { ring: (0..lists + nodes).map(|node| [node, node]).collect(), lists }
    }

    /// One more node, in no list.
    pub(crate) fn add(&mut self) -> u32 {
        let node = self.ring.len() as u32;
        self.ring.push([node, node]);
        node
    }

    /// The next newer node; the end of the list after the newest one.
    #[inline]
    #[must_use]
    pub(crate) fn next(&self, node: u32) -> u32 {
        self.ring[node as usize][1]
    }

    /// Whether a node is the end of a list.
    #[inline]
    #[must_use]
    pub(crate) fn is_end(&self, node: u32) -> bool {
        node < self.lists
    }

    /// The oldest node of a list.
    #[inline]
    #[must_use]
    pub(crate) fn oldest(&self, list: u32) -> Option<u32> {
        let node = self.next(list);
        (node != list).then_some(node)
    }

    /// Whether a node is alone: in no list, or in a ring without an end by itself.
    #[inline]
    #[must_use]
    pub(crate) fn is_alone(&self, node: u32) -> bool {
        self.next(node) == node
    }

    /// Takes a node out of its list.
    #[inline]
    pub(crate) fn remove(&mut self, node: u32) {
        let [older, newer] = self.ring[node as usize];
        self.ring[older as usize][1] = newer;
        self.ring[newer as usize][0] = older;
        self.ring[node as usize] = [node, node];
    }

    /// Puts a lone node right before another one (towards the old end); before the end of a list is its newest
    /// place.
    #[inline]
    pub(crate) fn insert_before(&mut self, at: u32, node: u32) {
        debug_assert!(self.is_alone(node));
        let older = std::mem::replace(&mut self.ring[at as usize][0], node);
        self.ring[older as usize][1] = node;
        self.ring[node as usize] = [older, at];
    }

    /// Puts a lone node at the newest end of a list.
    #[inline]
    pub(crate) fn push(&mut self, list: u32, node: u32) {
        self.insert_before(list, node);
    }

    /// Moves a node to the newest end of a list, from whichever list it is in.
    #[inline]
    pub(crate) fn renew(&mut self, list: u32, node: u32) {
        self.remove(node);
        self.push(list, node);
    }

    /// Nodes of a list from the oldest to the newest.
    pub(crate) fn iter(&self, list: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = list;
        std::iter::from_fn(move || {
            at = self.next(at);
            (at != list).then_some(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Links;

    fn lists(links: &Links) -> Vec<Vec<u32>> {
        (0..2).map(|list| links.iter(list).collect()).collect()
    }

    #[test]
    fn nodes_move_between_lists_and_within() {
        let mut links = Links::new(2, 3);
        assert_eq!(lists(&links), [vec![], vec![]] as [Vec<u32>; 2]);
        for node in [2, 3, 4] {
            links.push(0, node);
        }
        assert_eq!(lists(&links), [vec![2, 3, 4], vec![]]);
        links.renew(0, 2);
        links.renew(1, 3);
        assert_eq!(lists(&links), [vec![4, 2], vec![3]]);
        let five = links.add();
        links.insert_before(2, five);
        assert_eq!(lists(&links), [vec![4, 5, 2], vec![3]]);
        links.remove(4);
        assert!(links.is_alone(4) && links.oldest(0) == Some(5) && links.is_end(links.next(2)));
    }
}
