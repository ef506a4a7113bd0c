"""What one GraphQL request may ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GraphqlLimits:
    """Limits of a request. One that breaks a limit is refused, or stopped, with an error that names the limit.

    They are wide enough for a hundred full blocks with all transactions, and narrow enough that the worst request is
    over in well under a second. Introspection counts for nothing but tokens and depth.
    """

    max_body_bytes: int = 4 * 1024 * 1024
    """Room for a transaction with six blobs, written in hex."""
    max_tokens: int = 10_000
    """Words, numbers, signs and gaps of a document."""
    max_depth: int = 32
    """Levels of selections."""
    max_fields: int = 5_000
    """Fields of a document once its fragments are spread."""
    max_cost: int = 2_000_000
    """Work of one answer, where writing a field is 1, reading a block 20 and reading an account 100."""
    max_answer_bytes: int = 64 * 1024 * 1024
    max_blocks: int = 1_000
    """Blocks of one `blocks` range."""
    max_calls: int = 64
    """Calls, estimates and sent transactions of one request."""
    max_logs: int = 100_000
    """Logs of one answer."""
