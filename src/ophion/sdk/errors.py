"""Errors of a chain inside Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ophion.abi.interface import DecodedError
from ophion.errors import AbiError, OphionError
from ophion.runtime.terminal_text import escape_line

if TYPE_CHECKING:
    from ophion.sdk.receipt import Receipt


class ChainError(OphionError):
    """Raised when the chain cannot do what the caller requests."""


class ArgumentError(ChainError, AbiError, TypeError):
    """Raised when an argument has the wrong type or value, is missing or unknown. Nothing is executed or sent.

    Also a `TypeError`, the usual error for wrong arguments of a Python function.
    """


class UnknownName(ChainError, AbiError, AttributeError, KeyError):
    """Raised for the name of a function, event or event argument that a contract does not have."""


class OutputError(ChainError, AbiError):
    """Raised when the result of a call does not fit the ABI, or when there is no contract at the address."""


class TransactionRefused(ChainError):
    """Raised when the node refuses a transaction. The transaction is not mined."""


class Reverted(ChainError):
    """Raised when a call or a transaction fails.

    `str(error)` is the reason; `error.name` and `error.args_by_name` hold a custom error.
    """

    def __init__(
        self, outcome: str, decoded: DecodedError, what: str = "", receipt: Receipt | None = None, gas_used: int = 0
    ) -> None:
        self.outcome = outcome
        """Kind of failure: `reverted`, or the reason of a halt, such as `out of gas`."""
        self.decoded = decoded
        self.data = decoded.data
        self.name = decoded.name
        """Name of the error: `Error`, `Panic`, the name of a custom error, or None."""
        self.args_by_name: dict[str, Any] = dict(decoded.args)
        self.reason = str(decoded) if outcome == "reverted" else outcome
        self.receipt = receipt
        """The receipt of a mined transaction; None for a call."""
        self.gas_used = gas_used
        # escape the text, because a contract chooses its revert reason and tests print it
        super().__init__(escape_line(f"{what}: {self.reason}" if what else self.reason))
