"""One cache, written as plainly as possible (semantics of prefix mode: request-atomic, head most recent).

Everything here is slow on purpose: it is what the fast engines are held against.
"""

from __future__ import annotations

from collections import OrderedDict

Paths = list[list[int]]


def run_of(path: list[int], resident: set[int]) -> int:
    """Length of the leading run of resident blocks."""
    hits = 0
    for block in path:
        if block not in resident:
            break
        hits += 1
    return hits


def lru_hits(paths: Paths, capacity: int) -> list[int]:
    """Hit blocks of each request with an LRU cache of `capacity` blocks."""
    cache: OrderedDict[int, None] = OrderedDict()
    out = []
    for path in paths:
        out.append(run_of(path, set(cache)))
        for block in reversed(path[:capacity]):
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return out


def lru_content(paths: Paths, capacity: int) -> list[int]:
    """Blocks resident at the end, most recent first."""
    stack: list[int] = []
    for path in paths:
        stack = path + [block for block in stack if block not in path]
    return stack[:capacity]


def ceiling_hits(paths: Paths) -> list[int]:
    """Hit blocks of each request with an infinite cache."""
    seen: set[int] = set()
    out = []
    for path in paths:
        out.append(run_of(path, seen))
        seen.update(path)
    return out


def stack_distances(paths: Paths) -> list[list[int | None]]:
    """LRU stack distance of each block of each request: distinct blocks at or above it just before."""
    stack: list[int] = []
    out: list[list[int | None]] = []
    for path in paths:
        out.append([stack.index(block) + 1 if block in stack else None for block in path])
        stack = path + [block for block in stack if block not in path]
    return out


def opt_hits(paths: Paths, capacity: int) -> list[int]:
    """Hit blocks of each request under request-granular Belady with bypass; ties keep the shallower block."""
    never = len(paths)
    cache: set[int] = set()
    depth: dict[int, int] = {}
    out = []
    for now, path in enumerate(paths):
        out.append(run_of(path, cache))
        depth.update({block: at for at, block in enumerate(path)})
        next_use = {
            block: next((later for later in range(now + 1, never) if block in paths[later]), never)
            for block in cache | set(path)
        }
        kept = sorted((u, depth[b], b) for b, u in next_use.items() if u < never)
        cache = {block for _, _, block in kept[:capacity]}
    return out


def fifo_hits(paths: Paths, capacity: int) -> list[int]:
    """Hit blocks of each request under FIFO without closure: a hit changes nothing, the path is protected."""
    queue: list[int] = []
    out = []
    for path in paths:
        out.append(run_of(path, set(queue)))
        guarded = set(path[:capacity])
        for block in reversed(path[:capacity]):
            if block in queue:
                continue
            if len(queue) == capacity:
                victim = next((b for b in queue if b not in guarded), None)
                if victim is None:
                    continue
                queue.remove(victim)
            queue.append(block)
    return out
