"""The query editor of the GraphQL port, one of the files of the web interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ophion.rpc.transport.http.messages import Response
from ophion.web.service import PageFiles

PAGE_PATH: Final = b"/graphql/ui"

_FILES: Final = PageFiles(index="graphql.html")


def page_file(path: bytes, headers: Mapping[bytes, bytes]) -> Response | None:
    """Return the file at a path below `PAGE_PATH`, or None. `headers` are the request's headers."""
    if not path.startswith(PAGE_PATH) or path[len(PAGE_PATH) :][:1] not in (b"", b"/"):
        return None
    answer = _FILES.answer(path[len(PAGE_PATH) :].decode("latin-1") or "/", headers)
    if answer is None or answer.status not in (200, 304):
        return None
    lines = [f"{name}: {value}\r\n" for name, value in answer.headers if name != "Content-Type"]
    kind = dict(answer.headers)["Content-Type"].encode()
    return Response(answer.status, (answer.body,), kind, "".join(lines).encode() + b"Vary: Accept\r\n")
