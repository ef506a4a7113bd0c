"""Methods declared once."""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ophion.errors import RpcError
from ophion.primitives.types import BlockTag
from ophion.rpc import methods
from ophion.rpc.methods import all_methods, topics
from ophion.rpc.schema.registry import HTTP, WEBSOCKET, MethodSpec, Registry, Topic, group_names, group_of, method
from ophion.rpc.schema.wire_types import AddressParam, BlockParam, IntegerParam, Quantity
from tests.unit.rpc.wire import Context, registry, table


def spec_of(function: Any) -> MethodSpec:
    spec: MethodSpec = function.__rpc__
    return spec


@method("eth_some", aliases=["eth_other"], needs={"chain"})
def some(
    ctx: Any, from_address: AddressParam, block: BlockParam = BlockTag.LATEST
) -> Quantity | Awaitable[Quantity | None] | None:
    """One line.

    More lines.
    """
    return len(from_address)


def test_the_signature_says_what_a_method_takes_and_gives() -> None:
    spec = spec_of(some)
    assert (spec.summary, spec.description, spec.group) == ("One line.", "More lines.", "eth")
    assert [parameter.name for parameter in spec.signature.parameters] == ["fromAddress", "block"]
    assert spec.signature.parameters[1].default is BlockTag.LATEST
    assert spec.signature.result.name == "quantity"
    assert spec.signature.nullable
    assert spec.names == ("eth_some", "eth_other")


def test_a_parameter_without_a_wire_type_fails_when_it_is_read() -> None:
    @method("eth_bad")
    def bad(ctx: Any, x: int) -> Quantity:
        return x

    with pytest.raises(TypeError, match="eth_bad: parameter x"):
        _ = spec_of(bad).signature


def test_a_parameter_may_take_all_positions_but_not_some() -> None:
    @method("eth_sum")
    def total(ctx: Any, *numbers: IntegerParam) -> Quantity:
        return sum(numbers)

    bound = Registry([spec_of(total)]).bind(Context(), ["eth"], HTTP)["eth_sum"]
    assert (bound.invoke([], None), bound.invoke([1, 2, 3], None)) == (0, 6)

    @method("eth_more")
    def more(ctx: Any, first: IntegerParam, *others: IntegerParam) -> Quantity:
        return first + sum(others)

    with pytest.raises(TypeError, match="eth_more: a repeated parameter"):
        _ = spec_of(more).signature


def test_a_result_without_a_wire_type_fails_when_it_is_read() -> None:
    @method("eth_bad")
    def bad(ctx: Any) -> int:
        return 1

    with pytest.raises(TypeError, match="eth_bad: the result"):
        _ = spec_of(bad).signature


def test_every_method_of_the_node_can_be_read_and_written() -> None:
    signatures = [spec.signature for spec in all_methods().specs]
    assert len(signatures) > 150
    assert all(signature.result.encode is not None for signature in signatures)


def test_one_handler_may_answer_in_two_groups() -> None:
    @method("ibft_height", needs={"chain"})
    @method("qbft_height", needs={"miner"})
    def height(ctx: Any) -> Quantity:
        """How high."""
        return 7

    module = ModuleType(height.__module__)
    module.height = height  # type: ignore[attr-defined]
    known = Registry.of([module])
    assert [(spec.name, spec.group, spec.needs) for spec in known.specs] == [
        ("ibft_height", "ibft", {"chain"}),
        ("qbft_height", "qbft", {"miner"}),
    ]
    bound = known.bind(Context(), ["qbft"], HTTP)
    assert bound["qbft_height"].invoke([], None) == 7
    with pytest.raises(RpcError, match="not enabled"):
        bound["ibft_height"].invoke([], None)


def test_two_methods_cannot_have_one_name() -> None:
    with pytest.raises(TypeError, match="eth_some"):
        Registry([spec_of(some), spec_of(some)])


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


def test_aliases_answer_like_the_method_itself() -> None:
    bound = Registry([spec_of(some)]).bind(Context(), {"eth"}, HTTP)
    assert bound["eth_other"].invoke(["0x1"], None) == bound["eth_some"].invoke(["0x1"], None) == 20


def test_a_file_of_methods_is_loaded_when_somebody_asks_for_what_is_in_it() -> None:
    known = Registry(topics=[Topic("tests.unit.rpc.wire", ("eth",)), Topic("tests.nowhere", ("eth", "x"))])
    found = known.bind(Context(), {"eth"}, HTTP)
    assert found.get("other_method") is None
    assert found.get("eth_blockNumber") is not None
    assert found["eth_getCode"].name == "eth_getCode"
    with pytest.raises(ModuleNotFoundError):
        found.get("eth_somethingElse")
    assert found.get("eth_somethingElse") is None


def test_every_file_of_methods_says_which_groups_are_in_it() -> None:
    all_methods().specs  # noqa: B018 - loads them
    for topic in topics():
        found = Registry.of([sys.modules[topic.module]])
        assert {group_of(name) for spec in found.specs for name in spec.names} == set(topic.groups), topic.module
    files = {path.stem for path in Path(methods.__file__).parent.glob("*.py")} - {"__init__", "fork_config"}
    assert {topic.module.rpartition(".")[2] for topic in topics()} == files


def test_every_method_of_the_node_is_described() -> None:
    specs = all_methods().specs
    assert len(specs) > 80
    for spec in specs:
        assert spec.summary.endswith("."), spec.name
        assert spec.group in group_names(specs)
        for parameter in spec.signature.parameters:
            assert parameter.wire.description
    assert {"eth_getBalance", "net_version", "web3_sha3", "admin_nodeInfo", "miner_start", "txpool_content"} <= {
        spec.name for spec in specs
    }


def test_both_spellings_of_the_product_named_methods_are_known() -> None:
    names = {name for spec in all_methods().specs for name in spec.names}
    for suffix in ("Statistics", "Transactions"):
        assert {f"txpool_{word}{suffix}" for word in ("client", "besu", "pantheon")} <= names
    assert "miner_setEtherbase" in names
