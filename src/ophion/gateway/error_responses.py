"""Error responses for requests that reach no node, in the format that clients of the service expect."""

from __future__ import annotations

from typing import Final

import orjson

from ophion.errors import OphionError
from ophion.gateway.backends import ServiceKind
from ophion.rpc.errors import SERVER_ERROR_CODE
from ophion.rpc.transport.http.messages import JSON, Response

_RETRY: Final = b"Retry-After: 1\r\n"


class IncompleteResponse(OphionError):
    """A node disconnected after the client had received part of the response."""

    transient = True


def failure(kind: ServiceKind | None, status: int, message: str) -> Response:
    """Return an error response of the gateway itself. A response with status 503 carries `Retry-After`."""
    body: object
    if kind in (ServiceKind.JSON_RPC, ServiceKind.WEBSOCKET):
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": SERVER_ERROR_CODE, "message": message}}
    elif kind is ServiceKind.GRAPHQL:
        body = {"errors": [{"message": message}]}
    else:
        body = {"error": message}
    return Response(status, (orjson.dumps(body),), JSON, _RETRY if status == 503 else b"")
