"""Options of what clients may ask for.

Connections, bodies, batches and frames belong to one service each and stand with its options (interface_options); what
GraphQL limits besides is its own (ophion.graphql.limits).
"""

from __future__ import annotations

from ophion.runtime.options import Options, at_least, between, option

_KIBIBYTE = 2**10
_MEBIBYTE = 2**20


class LimitConfig(Options):
    """Limits of the public interface."""

    max_logs_range: int = option(
        "--rpc-max-logs-range",
        default=0,
        check=at_least(0),
        help="Blocks that one log query may span; 0 for no limit.",
    )
    gas_cap: int = option(
        "--rpc-gas-cap",
        default=50_000_000,
        check=between(0, 2**64 - 1),
        help="Most gas a simulated call may use; 0 for no limit.",
    )
    timeout_s: int = option(
        "--http-timeout-seconds",
        "--rpc-timeout-seconds",
        default=30,
        check=at_least(1),
        help="Seconds after which a request is given up.",
    )
    max_trace_range: int = option(
        "--rpc-max-trace-filter-range",
        default=1000,
        check=at_least(0),
        help="Blocks that one trace_filter may span; 0 for no limit.",
    )
    max_traces: int = option(
        "--rpc-max-traces",
        default=32,
        check=at_least(1),
        help="Answers that are sent while they are made, to all clients at a time.",
    )
    max_logs: int = option(
        "--rpc-max-logs",
        default=250_000,
        check=at_least(1),
        help="Logs in one answer; a search that finds more is refused.",
    )
    max_response_bytes: int = option(
        "--rpc-max-response-size",
        default=64 * _MEBIBYTE,
        check=at_least(1024),
        help="Bytes of the answer to one batch, and of any answer that is not sent while it is made.",
    )
    max_held_bytes: int = option(
        "--rpc-max-held-size",
        default=192 * _MEBIBYTE,
        check=at_least(_MEBIBYTE),
        help="Bytes that all clients of all services may make this node hold: requests that have not arrived or are at "
        "work, answers that were not taken yet. Beyond them those who hold much go, the oldest first.",
    )
    max_header_bytes: int = option(
        "--rpc-max-header-size",
        default=64 * _KIBIBYTE,
        check=at_least(1024),
        help="Bytes of the head of one HTTP request.",
    )
    max_filters: int = option(
        "--rpc-max-filters",
        default=10_000,
        check=at_least(1),
        help="Filters of all clients; the one idle longest makes room, unless all are in use.",
    )
    max_subscriptions: int = option(
        "--rpc-ws-max-subscriptions",
        default=1024,
        check=at_least(1),
        help="Subscriptions of one WebSocket connection.",
    )
    max_unread_bytes: int = option(
        "--rpc-ws-max-unread-size",
        default=4 * _MEBIBYTE,
        check=at_least(1024),
        help="Bytes of notifications that one WebSocket client may leave unread; less when many are behind.",
    )
    read_timeout_s: int = option(
        "--rpc-read-timeout-seconds",
        default=30,
        check=at_least(1),
        help="Seconds in which a request that has begun must have arrived.",
    )
    write_timeout_s: int = option(
        "--rpc-write-timeout-seconds",
        default=30,
        check=at_least(1),
        help="Seconds in which a client must take 128 KiB of a long answer, or the rest of it.",
    )
    idle_timeout_s: int = option(
        "--rpc-idle-timeout-seconds",
        default=600,
        check=at_least(1),
        help="Seconds after which an HTTP connection without requests is closed.",
    )
