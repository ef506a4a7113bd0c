"""Entry point of a worker: `python -m ophion.node.rpc_workers LINK FEED PAGE`, with inherited descriptors."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Sequence
from typing import Final

from ophion.runtime.lazy_imports import prepare

_SWITCH_INTERVAL_S: Final = 0.001


def main(arguments: Sequence[str]) -> None:
    """Run a worker until its node ends it."""
    prepare()
    # import these modules after `prepare`, which decides how modules load
    from ophion.node.rpc_workers.frames import read_frame
    from ophion.node.rpc_workers.setup import WorkerSetup
    from ophion.runtime import logs
    from ophion.runtime.event_loop import load_without_tls

    link, feed, page = map(int, arguments)
    link_socket = socket.socket(fileno=link)
    try:
        _, text = read_frame(link_socket)
    except (EOFError, OSError):
        return  # the node has ended
    setup = WorkerSetup.decode(text)
    logs.configure(setup.config.logs.level, setup.config.logs.format, False, sys.stderr)
    if not setup.config.speaks_tls:
        load_without_tls()
    import uvloop

    from ophion.node.rpc_workers.head_page import HeadPage
    from ophion.node.rpc_workers.worker import serve

    feed_socket = socket.socket(fileno=feed)
    link_socket.setblocking(False)
    feed_socket.setblocking(False)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(setup, link_socket, feed_socket, HeadPage(page)))


if __name__ == "__main__":
    main(sys.argv[1:])
