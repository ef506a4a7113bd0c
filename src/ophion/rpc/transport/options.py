"""Options of every service with a port. Each subclass sets the option names (`names`)."""

from __future__ import annotations

from typing import Any

from ophion.runtime.options import Options, option, read_host
from ophion.runtime.options import port as valid_port


def listening_port(default: int) -> Any:
    """Declare the option for the port of a service."""
    return option(
        "--{service}-port",
        default=default,
        check=valid_port,
        needs="--{service}-enabled",
        help="Port to listen on; 0 selects a free port, which the ports file in the data path lists.",
    )


class ListenerConfig(Options):
    """Address of one service: whether the service runs, and on which host and port it listens."""

    enabled: bool = option("--{service}-enabled", default=False, help="Serve {content}.")
    host: str = option(
        "--{service}-host",
        default="127.0.0.1",
        parse=read_host,
        metavar="HOST",
        needs="--{service}-enabled",
        help="Address to listen on, or several with commas between them.",
    )
    port: int = listening_port(0)
