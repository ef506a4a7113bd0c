"""Errors of a chain inside Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ophion.abi.interface import DecodedError
from ophion.errors import OphionError
from ophion.runtime.terminal_text import escape_line

if TYPE_CHECKING:
    from ophion.sdk.receipt import Receipt


class ChainError(OphionError):
    """The chain cannot do what was asked."""


class TransactionRefused(ChainError):
    """The node refuses a transaction; nothing was mined."""


class Reverted(ChainError):
    """A call or a transaction failed.

    `str(error)` is the reason; `error.name` and `error.args_by_name` hold a custom error.
    """

    def __init__(
        self, outcome: str, decoded: DecodedError, what: str = "", receipt: Receipt | None = None, gas_used: int = 0
    ) -> None:
        self.outcome = outcome
        """`reverted`, or the reason of a halt, such as `out of gas`."""
        self.decoded = decoded
        self.data = decoded.data
        self.name = decoded.name
        """`Error`, `Panic`, the name of a custom error, or None."""
        self.args_by_name: dict[str, Any] = dict(decoded.args)
        self.reason = str(decoded) if outcome == "reverted" else outcome
        self.receipt = receipt
        """The receipt of a mined transaction; None for a call."""
        self.gas_used = gas_used
        # bound the text: a contract chooses its revert reason, and tests print the message
        super().__init__(escape_line(f"{what}: {self.reason}" if what else self.reason))
