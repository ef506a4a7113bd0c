"""Options of a node that serves the web interface."""

from __future__ import annotations

from ophion.runtime.options import Options, option, read_host
from ophion.runtime.options import port as valid_port


class PageConfig(Options):
    """Web interface: address of the web interface."""

    enabled: bool = option(
        "--page-http-enabled",
        default=False,
        help="Serve the web interface (explorer, dashboard, playground) and the services of this node by path.",
    )
    host: str = option(
        "--page-http-host",
        default="127.0.0.1",
        parse=read_host,
        metavar="HOST",
        needs="--page-http-enabled",
        help="Address to listen on.",
    )
    port: int | None = option(
        "--page-http-port",
        default=None,
        check=valid_port,
        needs="--page-http-enabled",
        help="Port to listen on; 0 for a free one. (default: 8548, or a free one if that is in use)",
    )
