"""The choice of error texts. A separate small module, because the options of a node import it."""

from __future__ import annotations

from enum import Enum


class ErrorWording(Enum):
    """Values of `--rpc-error-wording`: which client's error texts and codes the node uses."""

    ORIGINAL = "original"
    """The error texts of Pantheon and Besu (json-rpc.md 2)."""
    MODERN = "modern"
    """The texts of go-ethereum for errors that client libraries recognise by their text (geth_error_messages)."""
    GETH = "geth"
    """The texts of `MODERN`, with go-ethereum's code -32000 in place of the codes of Pantheon and Besu."""
    ANVIL = "anvil"
    """Anvil's texts and codes for the same errors (anvil_error_messages)."""
