"""An HTTP server of one file, with the faults that a test asks for."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """The content and the faults of the server, and the requests so far."""

    content: bytes
    etag: str = '"one"'
    cuts: list[int] = field(default_factory=list)
    """Number of bytes after which each of the next responses ends."""
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next responses, instead of the file."""
    announces_size: bool = True
    redirect: str = ""
    ranges: list[str] = field(default_factory=list)
    """Range header of each request; empty if the request has no such header."""
    url: str = ""


@contextmanager
def serving(content: bytes) -> Iterator[FileServer]:
    """Serve `content` on a free port of the loopback interface."""
    served = FileServer(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.ranges.append(self.headers.get("Range", ""))
            if served.statuses:
                self.send_error(served.statuses.pop(0))
                return
            if served.redirect and self.path != "/moved.tar":
                self.send_response(302)
                self.send_header("Location", served.redirect)
                self.end_headers()
                return
            at, size = 0, len(served.content)
            found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            if found is not None and self.headers.get("If-Range") == served.etag:
                at = int(found[1])
            if at >= size > 0:
                self.send_error(416)
                return
            self.send_response(206 if at else 200)
            if at:
                self.send_header("Content-Range", f"bytes {at}-{size - 1}/{size}")
            if served.etag:
                self.send_header("ETag", served.etag)
            if served.announces_size:
                self.send_header("Content-Length", str(size - at))
            self.end_headers()
            end = at + served.cuts.pop(0) if served.cuts else size
            self.wfile.write(served.content[at:end])

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/chain.tar"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
