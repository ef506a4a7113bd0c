"""Limits of GraphQL requests, as options of the node."""

from __future__ import annotations

from collections.abc import Iterator

from ophion.runtime.options import Options, at_least, option

_MEBIBYTE = 2**20
_SWITCH = "--graphql-http-enabled"


class GraphqlLimits(Options):
    """Limits of GraphQL requests."""

    # The default limits admit a hundred full blocks with all transactions, and keep the slowest request well below a
    # second.

    max_body_bytes: int = option(
        "--graphql-http-max-request-content-length",
        default=4 * _MEBIBYTE,
        check=at_least(1),
        needs=_SWITCH,
        help="Maximum bytes of a request; the default fits a transaction with six blobs.",
    )
    max_tokens: int = option(
        "--graphql-max-tokens",
        default=10_000,
        check=at_least(1),
        needs=_SWITCH,
        help="Maximum lexical tokens of a document.",
    )
    max_depth: int = option(
        "--graphql-max-depth",
        default=32,
        check=at_least(1),
        needs=_SWITCH,
        help="Maximum depth of selections in a document.",
    )
    max_fields: int = option(
        "--graphql-max-fields",
        default=5_000,
        check=at_least(1),
        needs=_SWITCH,
        help="Maximum fields of a document after its fragments are expanded.",
    )
    max_cost: int = option(
        "--graphql-max-cost",
        default=2_000_000,
        check=at_least(1),
        needs=_SWITCH,
        help="Maximum work of one response: a field or 32 bytes of data is 1, a transaction 8, a block 20, an account "
        "100, a call 1000.",
    )
    timeout_s: int | None = option(
        "--graphql-timeout-seconds",
        default=None,
        check=at_least(1),
        needs=_SWITCH,
        help="Timeout of a request in seconds. (default: the value of --http-timeout-seconds)",
    )
    max_blocks: int = option(
        "--graphql-max-blocks",
        default=1_000,
        check=at_least(0),
        needs=_SWITCH,
        help="Maximum blocks of a range; 0 for no limit.",
    )
    max_logs: int = option(
        "--graphql-max-logs",
        default=100_000,
        check=at_least(1),
        needs=_SWITCH,
        help="Maximum logs of a response; a search that finds more is rejected.",
    )
    max_calls: int = option(
        "--graphql-max-calls",
        default=64,
        check=at_least(1),
        needs=_SWITCH,
        help="Maximum calls, estimates and sent transactions of a request.",
    )
    max_answer_bytes: int = option(
        "--graphql-max-answer-size",
        default=64 * _MEBIBYTE,
        check=at_least(1024),
        needs=_SWITCH,
        help="Maximum bytes of a response.",
    )
    max_held_bytes: int = option(
        "--graphql-max-held-size",
        default=128 * _MEBIBYTE,
        check=at_least(1024),
        needs=_SWITCH,
        help="Maximum bytes of all long responses that are being built (counted with the maximum size) or not yet "
        "received; further requests wait.",
    )
    max_heavy: int = option(
        "--graphql-max-heavy-queries",
        default=4,
        check=at_least(1),
        needs=_SWITCH,
        help="Maximum concurrent requests that take more than about a millisecond; further ones wait.",
    )
    hex_integers: bool = option(
        "--graphql-hex-integers-enabled",
        default=False,
        needs=_SWITCH,
        help="Return Long and Int as hexadecimal strings, as later Besu versions do.",
    )

    def problems(self) -> Iterator[str]:
        if self.max_held_bytes < self.max_answer_bytes:
            yield "--graphql-max-held-size must not be less than --graphql-max-answer-size"
