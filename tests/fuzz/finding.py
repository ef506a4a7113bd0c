"""Answers that no input may get."""

from __future__ import annotations

INTERNAL = b'"code":-32603,"message":"Internal error"}'
"""Without `data`: some methods answer bad input with this code, as they always did, and say what is wrong with it."""


class Finding(Exception):
    """Something was answered as it must not be."""

    def __init__(self, what: str, sent: bytes) -> None:
        super().__init__(what)
        self.sent = sent


def check_answer(answer: bytes, sent: bytes) -> None:
    """`Finding` when an answer, of whatever form, tells of a fault of the node."""
    if INTERNAL in answer:
        raise Finding(f"an internal error: {answer[:300]!r}", sent)
    if answer.startswith(b"HTTP/1.1 500"):
        raise Finding(f"status 500: {answer[:300]!r}", sent)
