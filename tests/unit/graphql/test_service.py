"""Tests the GraphQL service and its schema."""

from __future__ import annotations

import pytest

from ophion.graphql.limits import GraphqlLimits
from ophion.graphql.service import GraphqlSettings, graphql_engine, graphql_service, schema_text
from ophion.native.exceptions import DecodeError
from ophion.native.graphql import GraphqlEngine
from tests.unit.graphql.client import Client


def test_the_service_listens_on_the_configured_address(client: Client) -> None:
    service = graphql_service(client.rpc.context, GraphqlSettings(host="127.0.0.1", port=4711))
    assert (service.name, service.host, service.port) == ("GraphQL service", "127.0.0.1", 4711)


def test_the_schema_is_part_of_the_package(client: Client) -> None:
    assert "type Query" in schema_text()
    assert isinstance(graphql_engine(client.rpc.context, GraphqlLimits()), GraphqlEngine)


@pytest.mark.parametrize("schema", ["", "type Query {", "type Query { nothing: Int }", "type Query { block: Nothing }"])
def test_a_schema_that_nothing_can_serve_is_refused(schema: str) -> None:
    with pytest.raises(DecodeError, match="GraphQL schema: "):
        GraphqlEngine(
            schema, chain_id=1, protocol_version=1, shows_hex=False, max_tokens=1, max_depth=1, max_fields=1,
            max_cost=1, max_bytes=1, max_blocks=1, max_calls=1, max_logs_range=1, max_logs=1,
        )  # fmt: skip
