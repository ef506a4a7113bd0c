"""Fast path of HTTP: if a request repeats the HTTP head of an earlier request, the head is not parsed again.

The slow path is `RequestReader`. tests/unit/rpc/transport/http/test_fast_path.py compares both for the same bytes. To
understand `HttpConnection`, you can skip this module: without it, every request goes to the parser.
"""

from __future__ import annotations

from typing import Final

END_OF_HEAD: Final = b"\r\n\r\n"
_MAX_OWN_HEADS: Final = 8
_MAX_OWN_HEAD_BYTES: Final = 1536
"""Maximum size in bytes of an HTTP request head that one connection stores for itself."""


class PlainHeads:
    """Heads of plain requests, each with the size of the body that the head announces.

    A head is stored only after httptools has accepted the whole message. The request must be an API call on a
    persistent HTTP/1.1 connection, with an allowed host and a length, without `Origin` and `Expect`. The same bytes
    then mean the same request.
    """

    def __init__(self, max_heads: int = 1024, max_head_bytes: int = 1024) -> None:
        self._max_heads = max_heads
        self._max_head_bytes = max_head_bytes
        self.sizes: dict[bytes, int] = {}
        self.with_gzip: set[bytes] = set()
        """HTTP request heads that accept compressed answers."""

    def learn(self, message: bytes, body_size: int, accepts_gzip: bool = False) -> None:
        """Store the HTTP head of a message: all bytes before its body.

        A full table is cleared first. A head above the size limit is not stored.
        """
        end = message.find(END_OF_HEAD) + 4
        if len(message) - end != body_size or end > self._max_head_bytes:
            return
        if len(self.sizes) >= self._max_heads:
            self.sizes.clear()
            self.with_gzip.clear()
        self.sizes[message[:end]] = body_size
        if accepts_gzip:
            self.with_gzip.add(message[:end])


class HeadMatcher:
    """Recognises known HTTP request heads on one connection. Compares with the last head first, because most clients
    repeat their last head.
    """

    __slots__ = (
        "_heads",
        "_own",
        "accepts_gzip",
        "end",
        "head",
        "is_private",
        "learnable_bytes",
        "learnable_with_gzip",
        "size",
    )

    def __init__(self, heads: PlainHeads) -> None:
        self.learnable_bytes = -1
        """Body size of the request whose HTTP head `propose` has marked; -1 if no head is marked."""
        self.learnable_with_gzip = False
        self.is_private = False
        """Whether the marked HTTP head is stored for this connection only."""
        self.use(heads)

    def use(self, heads: PlainHeads) -> None:
        """Use the known request heads of another session from now on."""
        self._heads = heads
        self._own: PlainHeads | None = None
        self.head = b""
        self.end = self.size = -1
        """Length of the last HTTP request head, and of the whole request."""
        self.accepts_gzip = False

    def whole(self, data: bytes) -> int:
        """Return where the body begins if `data` is exactly one request with a known HTTP head, else 0."""
        return self.end if self.starts(data, 0) and self.size == len(data) else 0

    def starts(self, data: bytes, position: int) -> bool:
        """Return whether a complete request with a known HTTP head begins at a position. Further requests may
        follow.
        """
        is_same = self.size > 0 and data.startswith(self.head, position)
        is_known = is_same or self._find(data[position : data.find(END_OF_HEAD, position) + 4])
        return is_known and position + self.size <= len(data)

    def is_head(self, data: bytes) -> bool:
        """Return whether `data` is exactly a known HTTP request head, whose body has not arrived yet."""
        if self.size > self.end and data == self.head:
            return True
        return data.endswith(END_OF_HEAD) and self._find(data) and self.size > self.end

    def _find(self, head: bytes) -> bool:
        heads = self._heads
        size = heads.sizes.get(head)
        if size is None:
            if self._own is None:
                return False
            heads = self._own
            size = heads.sizes.get(head)
            if size is None:
                return False
        self.head, self.end, self.size = head, len(head), len(head) + size
        self.accepts_gzip = head in heads.with_gzip
        return True

    def propose(self, body_bytes: int, accepts_gzip: bool = False, is_private: bool = False) -> None:
        """Mark the HTTP head of the parsed request as a candidate for the fast path. `learn` stores the marked head.

        With `is_private`, only this connection uses the head.
        """
        self.learnable_bytes, self.learnable_with_gzip, self.is_private = body_bytes, accepts_gzip, is_private

    def learn(self, message: bytes, shared: PlainHeads) -> None:
        """Store the HTTP head that `propose` marked. `message` begins with this head.

        A private head holds a secret, so it goes to a small table that ends with the connection.
        """
        heads = shared
        if self.is_private:
            heads = self._own = self._own or PlainHeads(_MAX_OWN_HEADS, _MAX_OWN_HEAD_BYTES)
        heads.learn(message, self.learnable_bytes, self.learnable_with_gzip)
