"""Tests methods bound to the services and groups of a transport."""

from __future__ import annotations

import pytest

from ophion.errors import RpcError
from ophion.rpc.schema.registry import HTTP, WEBSOCKET
from tests.unit.rpc.wire import Context, registry, table


def test_a_table_holds_every_known_name_and_may_wait_only_where_a_handler_can() -> None:
    bound = table(Context())
    assert set(bound) == set(table(Context(), WEBSOCKET))
    assert not bound["eth_blockNumber"].may_wait
    assert bound["eth_wait"].may_wait
    with pytest.raises(RpcError, match="Method not enabled"):
        bound["admin_peers"].invoke([], None)


def test_a_method_whose_service_is_absent_is_not_enabled() -> None:
    context = Context()
    with pytest.raises(RpcError, match="Method not enabled"):
        table(context)["clique_propose"].invoke([], None)
    context.has_clique = True
    assert table(context)["clique_propose"].invoke([], None) is True


def test_a_method_of_the_connection_is_there_on_websocket_whatever_the_groups() -> None:
    bound = registry().bind(Context(), {"web3"}, WEBSOCKET)
    with pytest.raises(RpcError, match="Invalid params"):
        bound["eth_tell"].invoke([], None)
    with pytest.raises(RpcError, match="Method not enabled"):
        registry().bind(Context(), {"eth"}, HTTP)["eth_tell"].invoke([], None)
