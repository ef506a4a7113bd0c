"""Which words errors have. A file of its own because the options of a node need to know no more."""

from __future__ import annotations

from enum import Enum


class ErrorWording(Enum):
    """Values of `--rpc-error-wording`."""

    ORIGINAL = "original"
    """The texts of json-rpc.md 2."""
    MODERN = "modern"
    """Where libraries recognise an error by its text, the words they know (modern_words)."""
