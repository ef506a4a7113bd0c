"""Answers when a request reaches nobody, in the form that clients of the service expect."""

from __future__ import annotations

from typing import Final

import orjson

from ophion.errors import OphionError
from ophion.gateway.backends import Kind
from ophion.rpc.errors import SERVER_ERROR_CODE
from ophion.rpc.transport.http.messages import JSON, Response

_RETRY: Final = b"Retry-After: 1\r\n"


class AnswerLost(OphionError):
    """A node went away in the middle of an answer that the client has already begun to get."""

    transient = True


def failure(kind: Kind | None, status: int, message: str) -> Response:
    """An error that the gateway itself answers; 503 says when to try again."""
    body: object
    if kind in (Kind.JSON_RPC, Kind.WEBSOCKET):
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": SERVER_ERROR_CODE, "message": message}}
    elif kind is Kind.GRAPHQL:
        body = {"errors": [{"message": message}]}
    else:
        body = {"error": message}
    return Response(status, (orjson.dumps(body),), JSON, _RETRY if status == 503 else b"")
