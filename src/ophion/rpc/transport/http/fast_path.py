"""Fast path of HTTP: a request whose head a client has sent before is not parsed again.

The slow path is `RequestReader`. tests/unit/rpc/transport/http/test_fast_path.py compares both for the same bytes.
A reader of `HttpConnection` may skip this module: without it every request goes to the parser.
"""

from __future__ import annotations

from typing import Final

_END_OF_HEAD: Final = b"\r\n\r\n"


class PlainHeads:
    """Heads of plain requests, by their bytes, with the size of the body they announce.

    A head is learned only from a whole message that httptools has accepted and that leaves nothing to decide: a call
    on an open HTTP/1.1 connection, an allowed host, a length, no origin, no expectation. The same bytes mean the same
    again.
    """

    def __init__(self, max_heads: int = 1024, max_head_bytes: int = 1024) -> None:
        self._max_heads = max_heads
        self._max_head_bytes = max_head_bytes
        self.sizes: dict[bytes, int] = {}
        self.with_gzip: set[bytes] = set()
        """Heads that accept compressed answers."""

    def learn(self, message: bytes, body_size: int, accepts_gzip: bool = False) -> None:
        """Store the head of a message that ends with its body. A full table is cleared."""
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
    """Recognises known heads on one connection; remembers the last one, which most clients repeat."""

    __slots__ = ("_heads", "accepts_gzip", "end", "head", "learnable_bytes", "learnable_with_gzip", "size")

    def __init__(self, heads: PlainHeads) -> None:
        self.learnable_bytes = -1
        """Size of the body of the request that the parser has just proposed; -1 if it has not."""
        self.learnable_with_gzip = False
        self.use(heads)

    def use(self, heads: PlainHeads) -> None:
        """Compare with the heads of another session from here on."""
        self._heads = heads
        self.head = b""
        self.end = self.size = -1
        """Length of the last head, and of the whole request."""
        self.accepts_gzip = False

    def whole(self, data: bytes) -> int:
        """Where the body begins, if `data` is one whole request with a known head; 0 otherwise."""
        return self.end if self.starts(data, 0) and self.size == len(data) else 0

    def starts(self, data: bytes, position: int) -> bool:
        """Whether a whole request with a known head begins at a position; others may follow."""
        if not (self.size > 0 and data.startswith(self.head, position)):
            head = data[position : data.find(_END_OF_HEAD, position) + 4]
            size = self._heads.sizes.get(head)
            if size is None:
                return False
            self.head, self.end, self.size = head, len(head), len(head) + size
            self.accepts_gzip = head in self._heads.with_gzip
        return position + self.size <= len(data)

    def propose(self, body_bytes: int, accepts_gzip: bool = False) -> None:
        """The parser has read a plain request: its head may be learned."""
        self.learnable_bytes, self.learnable_with_gzip = body_bytes, accepts_gzip
