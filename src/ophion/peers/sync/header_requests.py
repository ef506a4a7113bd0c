"""`HeaderPlan`: plans header requests and links the received headers. Sends no requests itself.

Near the head, or with one peer, the target serves all ranges ("stretches") of headers. Far behind, with several peers,
the target first sends a skeleton: the last header ("post") of each of the next stretches. Then any peer can serve a
stretch, because its headers must link to the posts.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ophion.errors import OphionError
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32

STRETCH: Final = 192
"""Number of headers per request. All clients serve at least this many headers."""


class HeaderRange(Struct, frozen=True):
    """The range of headers of one request."""

    first: int
    count: int
    last_hash: Hash32 | None = None
    """Hash of the last header of the range; None if there is no skeleton."""

    @property
    def end(self) -> int:
        """The first block number after the range."""
        return self.first + self.count


class HeadersNotLinked(OphionError):
    """Raised when headers do not link to the previous headers. The peer is dishonest, or its chain was reorganised."""

    def __init__(self, stretch: HeaderRange) -> None:
        super().__init__(f"headers from {stretch.first} on do not link to the previous ones")
        self.stretch = stretch


class HeaderPlan:
    """The header requests from an ancestor up to a goal."""

    def __init__(self, ancestor: HashedHeader, goal: int) -> None:
        self.goal = goal
        """Number of the last header to request; may rise."""
        self.last = ancestor
        """The last header that is linked to the chain from the ancestor."""
        self._next = ancestor.number + 1
        self._failed: list[HeaderRange] = []
        """Header ranges whose request failed."""
        self._posts: list[HashedHeader] = []
        self._received: dict[int, tuple[HeaderRange, list[HashedHeader]]] = {}

    @property
    def is_complete(self) -> bool:
        """Whether all headers up to the goal are linked."""
        return self.last.number >= self.goal

    @property
    def posts_from(self) -> int:
        """Block number of the first skeleton header in the next request."""
        return self._next + STRETCH - 1

    @property
    def waits_for_posts(self) -> bool:
        """Whether the next header range cannot be requested yet, because its last header is unknown."""
        return not self._failed and not self._posts

    def set_posts(self, posts: list[HashedHeader]) -> None:
        """Store the skeleton: headers that are `STRETCH` blocks apart, from `posts_from` on."""
        self._posts = list(posts)

    def next_stretch(self, horizon: int) -> HeaderRange | None:
        """Return the next header range to request, up to the goal and the horizon, or None when no range is left."""
        if self._failed:
            return self._failed.pop(0)
        count = min(STRETCH, self.goal + 1 - self._next)
        if count <= 0 or self._next + count > horizon:
            return None
        post = self._posts.pop(0) if self._posts else None
        stretch = HeaderRange(self._next, count, None if post is None else post.hash)
        self._next += count
        return stretch

    def give_back(self, stretch: HeaderRange) -> None:
        """Put a header range back to the front of the queue after a request that failed or returned too few headers."""
        self._failed.append(stretch)
        self._failed.sort(key=lambda one: one.first)

    def received(self, stretch: HeaderRange, headers: list[HashedHeader]) -> list[HashedHeader]:
        """Add the headers of a range. Returns the headers that extend the linked chain now, in order.

        Raises `HeadersNotLinked` when headers do not link to the previous headers or to the skeleton.
        """
        if len(headers) < stretch.count:
            # the response has fewer headers than requested, so request the missing headers again
            self.give_back(HeaderRange(stretch.first + len(headers), stretch.count - len(headers), stretch.last_hash))
            stretch = HeaderRange(stretch.first, len(headers))
        elif stretch.last_hash is not None and headers[-1].hash != stretch.last_hash:
            raise HeadersNotLinked(stretch)
        if headers:
            self._received[stretch.first] = (stretch, headers)
        linked: list[HashedHeader] = []
        while (found := self._received.pop(self.last.number + 1, None)) is not None:
            if found[1][0].parent_hash != self.last.hash:
                raise HeadersNotLinked(found[0])
            linked.extend(found[1])
            self.last = found[1][-1]
        return linked

    def end_here(self) -> None:
        """End the plan at the last linked header."""
        self.goal = self.last.number
        self._failed.clear()
