"""Fast path of HTTP: if the head of a request is the same as before, it is not parsed again.

The slow path is `RequestReader`. tests/unit/rpc/transport/http/test_fast_path.py compares both for the same bytes. To
understand `HttpConnection`, you can skip this module: without it, every request goes to the parser.
"""

from __future__ import annotations

from typing import Final

_END_OF_HEAD: Final = b"\r\n\r\n"


class PlainHeads:
    """Heads of plain requests, by their bytes, with the size of the body they announce.

    A head is stored only after httptools has accepted the whole message, and only for simple requests: a call on an
    open HTTP/1.1 connection, with an allowed host and a length, without origin and expectation. The same bytes then
    mean the same request.
    """

    def __init__(self, max_heads: int = 1024, max_head_bytes: int = 1024) -> None:
        self._max_heads = max_heads
        self._max_head_bytes = max_head_bytes
        self.sizes: dict[bytes, int] = {}
        self.with_gzip: set[bytes] = set()
        """Heads that accept compressed answers."""

    def learn(self, message: bytes, body_size: int, accepts_gzip: bool = False) -> None:
        """Store the head of a message whose body is at its end. A full table is cleared first."""
        end = message.find(_END_OF_HEAD) + 4
        if len(message) - end != body_size or end > self._max_head_bytes:
            return
        if len(self.sizes) >= self._max_heads:
            self.sizes.clear()
            self.with_gzip.clear()
        self.sizes[message[:end]] = body_size
        if accepts_gzip:
            self.with_gzip.add(message[:end])


class HeadMatcher:
    """Recognises known heads on one connection. Compares with the last head first, because most clients repeat it."""

    __slots__ = ("_heads", "accepts_gzip", "end", "head", "learnable_bytes", "learnable_with_gzip", "size")

    def __init__(self, heads: PlainHeads) -> None:
        self.learnable_bytes = -1
        """Body size of the request whose head the parser has proposed to store; -1 if there is none."""
        self.learnable_with_gzip = False
        self.use(heads)

    def use(self, heads: PlainHeads) -> None:
        """From now on compare with the heads of another session."""
        self._heads = heads
        self.head = b""
        self.end = self.size = -1
        """Length of the last head, and of the whole request."""
        self.accepts_gzip = False

    def whole(self, data: bytes) -> int:
        """Return where the body begins if `data` is exactly one request with a known head, else 0."""
        return self.end if self.starts(data, 0) and self.size == len(data) else 0

    def starts(self, data: bytes, position: int) -> bool:
        """Return whether a complete request with a known head begins at a position; more requests may follow."""
        if not (self.size > 0 and data.startswith(self.head, position)):
            head = data[position : data.find(_END_OF_HEAD, position) + 4]
            size = self._heads.sizes.get(head)
            if size is None:
                return False
            self.head, self.end, self.size = head, len(head), len(head) + size
            self.accepts_gzip = head in self._heads.with_gzip
        return position + self.size <= len(data)

    def propose(self, body_bytes: int, accepts_gzip: bool = False) -> None:
        """Mark the head of the request just parsed as one to store."""
        self.learnable_bytes, self.learnable_with_gzip = body_bytes, accepts_gzip
