"""The query page for browsers: written for this node, served by it, with nothing from any other host."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from ophion.rpc.transport.http.wire import Response

_HEADERS: Final = (
    b"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
    b"Referrer-Policy: no-referrer\r\n"
    b"Cache-Control: no-cache\r\n"
    b"Vary: Accept\r\n"
)


def _file(name: str, content_type: bytes) -> Response:
    return Response(200, (files(__package__).joinpath(name).read_bytes(),), content_type, _HEADERS)


_INDEX: Final = _file("index.html", b"text/html; charset=utf-8")

PAGE_FILES: Final[Mapping[bytes, Response]] = {
    b"/graphql/ui": _INDEX,
    b"/graphql/ui/": _INDEX,
    b"/graphql/ui/page.css": _file("page.css", b"text/css; charset=utf-8"),
    b"/graphql/ui/page.js": _file("page.js", b"text/javascript; charset=utf-8"),
}
"""By path."""
