"""Recognises answers that must never occur."""

from __future__ import annotations

INTERNAL = b'"code":-32603,"message":"Internal error"}'
"""The internal error without `data`. Some methods use this code for bad input, but then `data` has the reason."""


class Finding(Exception):
    """A forbidden answer."""

    def __init__(self, what: str, sent: bytes) -> None:
        super().__init__(what)
        self.sent = sent


def check_answer(answer: bytes, sent: bytes) -> None:
    """Raise `Finding` if an answer of any form reports an internal error."""
    if INTERNAL in answer:
        raise Finding(f"an internal error: {answer[:300]!r}", sent)
    if answer.startswith(b"HTTP/1.1 500"):
        raise Finding(f"status 500: {answer[:300]!r}", sent)
