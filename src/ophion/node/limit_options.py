"""Limits that all services of the public interface share.

Limits of one service (connections, bodies, batches, frames) are in interface_options; limits of GraphQL are in
ophion.graphql.limits.
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
        help="Maximum block range of one log query; 0 for no limit.",
    )
    gas_cap: int = option(
        "--rpc-gas-cap",
        default=50_000_000,
        check=between(0, 2**64 - 1),
        help="Gas limit of a simulated call; 0 for no limit.",
    )
    timeout_s: int = option(
        "--http-timeout-seconds",
        "--rpc-timeout-seconds",
        default=30,
        check=at_least(1),
        help="Seconds after which a request is cancelled.",
    )
    max_trace_range: int = option(
        "--rpc-max-trace-filter-range",
        default=1000,
        check=at_least(0),
        help="Maximum block range of one trace_filter; 0 for no limit.",
    )
    max_traces: int = option(
        "--rpc-max-traces",
        default=32,
        check=at_least(1),
        help="Maximum number of streamed responses at a time, for all clients.",
    )
    max_logs: int = option(
        "--rpc-max-logs",
        default=250_000,
        check=at_least(0),
        help="Maximum number of logs in one response; larger queries are refused. 0 for no limit.",
    )
    max_response_bytes: int = option(
        "--rpc-max-response-size",
        default=64 * _MEBIBYTE,
        check=at_least(1024),
        help="Maximum size in bytes of a batch response, and of any response that is not streamed.",
    )
    max_held_bytes: int = option(
        "--rpc-max-held-size",
        default=192 * _MEBIBYTE,
        check=at_least(_MEBIBYTE),
        help="Memory in bytes for requests and unread responses of all clients. Beyond it the node disconnects the "
        "clients that hold most, the oldest first.",
    )
    sql_timeout_s: int = option(
        "--rpc-sql-timeout", default=10, check=at_least(1), help="Seconds after which an SQL query is ended."
    )
    sql_max_rows: int = option(
        "--rpc-sql-max-rows", default=10_000, check=at_least(1), help="Maximum number of rows of an SQL query."
    )
    sql_max_memory_mb: int = option(
        "--rpc-sql-max-memory", default=512, check=at_least(16), help="Memory in MiB for an SQL query."
    )
    max_header_bytes: int = option(
        "--rpc-max-header-size",
        default=64 * _KIBIBYTE,
        check=at_least(1024),
        help="Maximum size of the headers of an HTTP request in bytes.",
    )
    max_filters: int = option(
        "--rpc-max-filters",
        default=10_000,
        check=at_least(1),
        help="Maximum number of filters of all clients; above it, the filter that was idle longest is removed, unless "
        "all are in use.",
    )
    max_subscriptions: int = option(
        "--rpc-ws-max-subscriptions",
        default=1024,
        check=at_least(1),
        help="Maximum number of subscriptions of one WebSocket connection.",
    )
    max_unread_bytes: int = option(
        "--rpc-ws-max-unread-size",
        default=4 * _MEBIBYTE,
        check=at_least(1024),
        help="Send buffer in bytes of one WebSocket client; less while many clients are slow.",
    )
    read_timeout_s: int = option(
        "--rpc-read-timeout-seconds",
        default=30,
        check=at_least(1),
        help="Seconds in which a request must arrive after its first byte.",
    )
    write_timeout_s: int = option(
        "--rpc-write-timeout-seconds",
        default=30,
        check=at_least(1),
        help="Seconds in which a client must read 128 KiB of a long response, or its rest.",
    )
    idle_timeout_s: int = option(
        "--rpc-idle-timeout-seconds",
        default=600,
        check=at_least(1),
        help="Seconds after which an HTTP connection without requests is closed.",
    )
