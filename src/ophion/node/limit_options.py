"""Options of what clients may ask for; limits that the original options know stand with those (interface_options)."""

from __future__ import annotations

from dataclasses import dataclass

from ophion.runtime.options import at_least, option

_KIBIBYTE = 2**10
_MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class LimitConfig:
    """Limits of the public interface."""

    max_logs: int = option(
        "--rpc-max-logs",
        default=250_000,
        check=at_least(1),
        help="Logs in one answer; a search that finds more is refused.",
    )
    max_response_bytes: int = option(
        "--rpc-max-response-size",
        default=256 * _MEBIBYTE,
        check=at_least(1024),
        help="Bytes of the answer to one batch, and of any answer that cannot be sent while it is made.",
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
        help="Seconds in which a client must begin to take its answers.",
    )
    idle_timeout_s: int = option(
        "--rpc-idle-timeout-seconds",
        default=600,
        check=at_least(1),
        help="Seconds after which an HTTP connection without requests is closed.",
    )
