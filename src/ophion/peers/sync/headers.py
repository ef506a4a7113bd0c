"""Which headers to ask for next, and what has come linked into one chain. Asks nobody itself.

Two ways. Near the end, or with one peer only, the target is asked for one stretch after the other, some of them at a
time. A long way behind, with several peers, the target first sets posts: the last header of each of the next
stretches. Then anybody may fill a stretch, because a filling that does not lead from post to post is not taken.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ophion.errors import OphionError
from ophion.primitives.block import HashedHeader
from ophion.primitives.types import Hash32

STRETCH: Final = 192
"""Headers of one request; all clients serve so many."""


class Stretch(Struct, frozen=True):
    """Headers that are asked for with one request."""

    first: int
    count: int
    last_hash: Hash32 | None = None
    """The post at its end, where the target has set one."""

    @property
    def end(self) -> int:
        """The first number after it."""
        return self.first + self.count


class DoesNotLink(OphionError):
    """Headers that do not follow the ones before. The peer lies, or its chain has changed between two answers."""

    def __init__(self, stretch: Stretch) -> None:
        super().__init__(f"headers from {stretch.first} on do not follow")
        self.stretch = stretch


class HeaderPlan:
    """The way from an ancestor to a block far ahead."""

    def __init__(self, ancestor: HashedHeader, goal: int) -> None:
        self.goal = goal
        """Number of the last header to ask for; may rise."""
        self.last = ancestor
        """The last header of the chain so far."""
        self._next = ancestor.number + 1
        self._again: list[Stretch] = []
        """Asked for in vain."""
        self._posts: list[HashedHeader] = []
        self._came: dict[int, tuple[Stretch, list[HashedHeader]]] = {}

    @property
    def is_complete(self) -> bool:
        """Whether everything up to the goal has come."""
        return self.last.number >= self.goal

    @property
    def posts_from(self) -> int:
        """Number of the first post that would be of use now."""
        return self._next + STRETCH - 1

    @property
    def waits_for_posts(self) -> bool:
        """Whether the next stretch has no post at its end."""
        return not self._again and not self._posts

    def set_posts(self, posts: list[HashedHeader]) -> None:
        """Headers `STRETCH` apart, the first of them at `posts_from`."""
        self._posts = list(posts)

    def next_stretch(self, horizon: int) -> Stretch | None:
        """What to ask for next; None when nothing is left below the goal and the horizon."""
        if self._again:
            return self._again.pop(0)
        count = min(STRETCH, self.goal + 1 - self._next)
        if count <= 0 or self._next + count > horizon:
            return None
        post = self._posts.pop(0) if self._posts else None
        stretch = Stretch(self._next, count, None if post is None else post.hash)
        self._next += count
        return stretch

    def give_back(self, stretch: Stretch) -> None:
        """Nobody has answered: it is asked for again, before anything else."""
        self._again.append(stretch)
        self._again.sort(key=lambda one: one.first)

    def came(self, stretch: Stretch, headers: list[HashedHeader]) -> list[HashedHeader]:
        """Headers of a stretch, linked among themselves; those that continue the chain now, in order.

        `DoesNotLink` when some do not follow what is before them, or do not lead to the post.
        """
        if len(headers) < stretch.count:
            # the answer was cut short: the rest is asked for again
            self.give_back(Stretch(stretch.first + len(headers), stretch.count - len(headers), stretch.last_hash))
            stretch = Stretch(stretch.first, len(headers))
        elif stretch.last_hash is not None and headers[-1].hash != stretch.last_hash:
            raise DoesNotLink(stretch)
        if headers:
            self._came[stretch.first] = (stretch, headers)
        linked: list[HashedHeader] = []
        while (found := self._came.pop(self.last.number + 1, None)) is not None:
            if found[1][0].parent_hash != self.last.hash:
                raise DoesNotLink(found[0])
            linked.extend(found[1])
            self.last = found[1][-1]
        return linked

    def end_here(self) -> None:
        """Nothing comes after what has come."""
        self.goal = self.last.number
        self._again.clear()
