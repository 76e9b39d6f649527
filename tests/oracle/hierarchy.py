"""Several LRU tiers, literally as the semantics say: cascade, victim moves, passes, hand-downs.

Closure `none`, admission `always`, chunks of one block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Paths = list[list[int]]


@dataclass
class Tier:
    """One tier: `order` holds its blocks, oldest first."""

    capacity: int
    fill: str = "write_through"
    touch: str = "path"
    order: list[int] = field(default_factory=list)
    unserved: set[int] = field(default_factory=set)
    counters: dict[str, int] = field(default_factory=dict)

    def count(self, name: str, more: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + more

    def move_to_end(self, block: int) -> None:
        self.order.remove(block)
        self.order.append(block)

    def leave(self, block: int) -> None:
        self.order.remove(block)
        if block in self.unserved:
            self.unserved.discard(block)
            self.count("dead_on_arrival")

    def insert(self, block: int, guarded: set[int]) -> int | None:
        """Insert an absent block; returns the victim that made room, if any."""
        victim = None
        if len(self.order) == self.capacity:
            victim = next((b for b in self.order if b not in guarded), None)
            if victim is None:
                self.count("no_room")
                return None
            self.leave(victim)
            self.count("evicted")
        self.order.append(block)
        self.unserved.add(block)
        self.count("inserted")
        return victim


class Hierarchy:
    """Tiers, fastest first."""

    def __init__(self, tiers: list[Tier]) -> None:
        self.tiers = tiers

    def replay(self, paths: Paths) -> list[list[int]]:
        """Hit blocks of each request in each tier: ``[request][tier]``."""
        return [self.request(path) for path in paths]

    def request(self, path: list[int]) -> list[int]:
        served = self.look_up(path)
        first = self.tiers[0]
        head = min(len(path), first.capacity)
        self.move_up(path, served, head)
        for k, tier in enumerate(self.tiers):
            self.run_pass(k, tier, path, served=served)
        return served

    def look_up(self, path: list[int]) -> list[int]:
        served, at = [], 0
        for tier in self.tiers:
            start = at
            tier.count("asked", len(path) - start)
            while at < len(path) and path[at] in tier.order:
                tier.unserved.discard(path[at])
                at += 1
            served.append(at - start)
        end = at
        for tier in self.tiers:
            tier.count("stranded", sum(block in tier.order for block in path[end:]))
        return served

    def move_up(self, path: list[int], served: list[int], head: int) -> None:
        for k, tier in enumerate(self.tiers):
            if k == 0 or tier.fill != "victim":
                continue
            end = sum(served)
            for at, block in enumerate(path[:head]):
                if block not in tier.order:
                    continue
                if at >= end:
                    tier.count("superseded")
                tier.count("moved")
                tier.leave(block)

    def run_pass(self, k: int, tier: Tier, path: list[int], *, served: list[int]) -> None:
        limit = min(len(path), tier.capacity)
        start, end = sum(served[:k]), sum(served[: k + 1])
        absent = {block for block in path[:limit] if block not in tier.order}
        inserted: set[int] = set()
        for at in range(limit - 1, -1, -1):
            block = path[at]
            if block in absent and block not in tier.order:
                if self.offered(k, tier, at, end=end, total=sum(served)):
                    before = len(tier.order), tier.counters.get("inserted", 0)
                    victim = tier.insert(block, set(path[:limit]))
                    if tier.counters.get("inserted", 0) > before[1]:
                        inserted.add(block)
                    self.hand_down(k, victim, path)
            elif block in tier.order and block not in inserted:
                this_tier_served = start <= at < end
                if k == 0 or this_tier_served or (tier.touch == "path" and tier.fill != "victim"):
                    tier.move_to_end(block)

    @staticmethod
    def offered(k: int, tier: Tier, at: int, *, end: int, total: int) -> bool:
        """Whether tier k is offered the block at a position it lacks."""
        if k == 0:
            return True
        served_below = end <= at < total
        computed = at >= total
        return {"write_through": served_below or computed, "write_back": served_below, "victim": False}[
            tier.fill
        ]

    def hand_down(self, k: int, victim: int | None, path: list[int]) -> None:
        if victim is None or k + 1 == len(self.tiers):
            return
        below = self.tiers[k + 1]
        if below.fill == "write_through" or victim in below.order:
            return
        guarded = set(path[: min(len(path), below.capacity)])
        self.hand_down(k + 1, below.insert(victim, guarded), path)
