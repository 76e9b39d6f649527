//! HiCache: pages that come back from storage before a request is scheduled.

use super::model::Model;
use super::pages::Pages;
use super::tree::{Found, Place, ROOT};
use crate::engine::{Cause, EngineRequest, Recorder};

impl Model {
    /// Reads pages behind the known ones from storage into host memory and returns how many.
    ///
    /// The look-up is one of its own: it refreshes and splits like the one that follows when the request is
    /// scheduled.
    pub(super) fn prefetch(
        &mut self,
        pages: &Pages<'_>,
        request: &EngineRequest<'_>,
        out: &mut Recorder,
    ) -> u32 {
        if self.storage.is_none() {
            return 0;
        }
        let found = self.find(pages);
        let hit = self.storage_hit(pages, found, request.block_tokens);
        if hit == 0 {
            return 0;
        }
        let fetched = self.make_room_for_fetch(found.node, hit, request.block_tokens, out);
        if fetched > 0 {
            self.fetch(&pages.path[found.pages as usize..][..fetched as usize], found.node, out);
        }
        fetched
    }

    /// Pages that storage holds behind the known ones; 0 where too few are asked for or found.
    fn storage_hit(&self, pages: &Pages<'_>, found: Found, block_tokens: u32) -> u32 {
        let (Some(storage), Some(host)) = (&self.storage, &self.host) else { return 0 };
        let tokens = |pages: u64| pages * u64::from(block_tokens);
        let anchored = found.node == ROOT || self.tree.node(found.node).host;
        let asked = pages.limit() - u64::from(found.pages);
        // Half of host memory is left to backups; alone, a request is declined only where that is nothing.
        if !anchored || tokens(asked) < storage.threshold(block_tokens) || tokens(host.pool.capacity) < 2 {
            return 0;
        }
        let behind = &pages.looked_up()[found.pages as usize..];
        let hit = behind.iter().take_while(|&&block| storage.holds(block)).count() as u32;
        if tokens(hit.into()) < storage.threshold(block_tokens) { 0 } else { hit }
    }

    /// Makes room for `hit` pages in host memory and returns for how many there is: all, or what is free if
    /// that is still worth it.
    fn make_room_for_fetch(&mut self, anchor: u32, hit: u32, block_tokens: u32, out: &mut Recorder) -> u32 {
        if self.host_free() < u64::from(hit) {
            self.tree.pin(anchor);
            // The engine asks for the whole hit here, not for what is missing.
            self.evict_host(hit.into(), out);
            self.tree.unpin();
        }
        let room = self.host_free().min(hit.into());
        let threshold = self.storage.as_ref().map_or(0, |storage| storage.threshold(block_tokens));
        if room == u64::from(hit) || room * u64::from(block_tokens) >= threshold { room as u32 } else { 0 }
    }

    fn host_free(&self) -> u64 {
        self.host.as_ref().map_or(0, |host| host.pool.free())
    }

    /// Reads pages into a new node of host memory below `anchor`.
    fn fetch(&mut self, path: &[u32], anchor: u32, out: &mut Recorder) {
        let (Some(host), Some(storage)) = (&mut self.host, &mut self.storage) else { return };
        storage.read(path);
        host.pool.used += path.len() as u64;
        for &block in path {
            out.insert(host.pool.tier, block, Cause::Promotion);
        }
        let now = self.tree.tick();
        self.tree.node_mut(anchor).usage.access = now;
        self.tree.add(anchor, path, 0, Place::Host);
    }
}
