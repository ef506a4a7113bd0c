"""Tests error responses in the format of the requested service."""

from __future__ import annotations

import orjson
import pytest

from ophion.gateway.backends import ServiceKind
from ophion.gateway.error_responses import failure


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ServiceKind.JSON_RPC, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "down"}}),
        (ServiceKind.WEBSOCKET, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "down"}}),
        (ServiceKind.GRAPHQL, {"errors": [{"message": "down"}]}),
        (ServiceKind.METRICS, {"error": "down"}),
        (None, {"error": "down"}),
    ],
)
def test_the_form_is_that_of_the_service(kind: ServiceKind | None, body: object) -> None:
    answer = failure(kind, 502, "down")
    assert (answer.status, orjson.loads(b"".join(answer.body)), answer.headers) == (502, body, b"")


def test_a_refused_client_learns_when_to_retry() -> None:
    assert failure(None, 503, "full").headers == b"Retry-After: 1\r\n"
