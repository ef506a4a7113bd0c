"""Options of the page that a node serves."""

from __future__ import annotations

from ophion.runtime.options import Options, option, read_host
from ophion.runtime.options import port as valid_port


class PageConfig(Options):
    """The page."""

    enabled: bool = option(
        "--page-http-enabled",
        default=False,
        help="Serve a page for people (explorer, dashboard, playground), with the services of this node below it.",
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
        help="Port to listen on; 0 takes a free one. (default: 8548, or a free one where that is taken)",
    )
