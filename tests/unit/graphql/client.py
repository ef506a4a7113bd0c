"""Serves GraphQL of a node in process: a real chain, pool and engine, without sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ophion.chainspec.genesis import Genesis
from ophion.graphql.http import GraphqlApplication, Guard
from ophion.graphql.limits import GraphqlLimits
from ophion.graphql.service import graphql_engine
from ophion.node.config import NodeConfig
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.replies import PendingReply
from ophion.testing.node_core import DEV_CONFIG
from tests.conftest import DATA
from tests.unit.rpc.interface import Interface, import_chain, open_interface

JSON_TYPE = b"application/json"


class Client:
    """A client without sockets."""

    def __init__(self, rpc: Interface, limits: GraphqlLimits | None = None, guard: Guard | None = None) -> None:
        self.rpc = rpc
        limits = limits or GraphqlLimits()
        engine = graphql_engine(rpc.context, limits)
        self.application = GraphqlApplication(rpc.context, engine, rpc.loop, 30.0, limits, guard)

    def respond(
        self,
        method: bytes,
        path: bytes = b"/graphql",
        query: bytes = b"",
        headers: Mapping[bytes, bytes] | None = None,
        body: bytes = b"",
    ) -> Response:
        """Return the response to any request."""

        async def main() -> Response:
            result = self.application.respond(Request(method, path, query, headers or {}, body))
            if isinstance(result, PendingReply):
                waiting: asyncio.Future[Any] = self.rpc.loop.create_future()
                result.deliver = waiting.set_result
                result = await asyncio.wait_for(waiting, 60)
            assert isinstance(result, Response)
            return result

        return self.rpc.run(main())

    def post(self, document: str, variables: Any = None, operation: str | None = None) -> tuple[int, Any]:
        """Send a JSON request. Returns status and parsed answer."""
        body = json.dumps({"query": document, "variables": variables, "operationName": operation}).encode()
        return parsed(self.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=body))

    def get(self, **fields: str) -> tuple[int, Any]:
        """Send a request in the URL. Returns status and parsed answer."""
        return parsed(self.respond(b"GET", query=urlencode(fields).encode()))

    def ask(self, document: str, variables: Any = None, operation: str | None = None) -> Any:
        """Return the data of a request that must succeed."""
        status, answer = self.post(document, variables, operation)
        assert (status, list(answer)) == (200, ["data"]), answer
        return answer["data"]

    def errors(self, document: str, variables: Any = None) -> list[dict[str, Any]]:
        """Return the errors of a request that must fail."""
        status, answer = self.post(document, variables)
        assert (status, next(iter(answer))) == (400, "errors"), answer
        found: list[dict[str, Any]] = answer["errors"]
        return found

    def error(self, document: str, variables: Any = None) -> dict[str, Any]:
        """Return the only error of a request that must fail."""
        (found,) = self.errors(document, variables)
        return found


def parsed(response: Response) -> tuple[int, Any]:
    """Return status and parsed body of a response."""
    assert response.content_type == b"application/json; charset=utf-8", response
    return response.status, json.loads(b"".join(response.body))


@contextmanager
def open_client(
    path: Path, genesis: Genesis | None = None, config: NodeConfig = DEV_CONFIG, limits: GraphqlLimits | None = None
) -> Iterator[Client]:
    """Open GraphQL of the node in this directory."""
    with open_interface(path, genesis, config) as rpc:
        client = Client(rpc, limits)
        try:
            yield client
        finally:
            client.application.close()


@contextmanager
def original_chain(path: Path, limits: GraphqlLimits | None = None) -> Iterator[Client]:
    """Open GraphQL on Pantheon's test chain: 32 proof-of-work blocks."""
    genesis = import_chain(path, DATA / "original-chain/genesis.json", DATA / "original-chain/test.blocks")
    with open_client(path, genesis, NodeConfig(), limits) as client:
        yield client
