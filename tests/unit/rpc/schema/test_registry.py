"""Tests the registry: names, aliases, and files imported at first use."""

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
from ophion.rpc.methods import all_methods, method_files
from ophion.rpc.schema.registry import HTTP, MethodFile, MethodSpec, Registry, group_of, method
from ophion.rpc.schema.wire_types import AddressParam, BlockParam, Quantity
from tests.unit.rpc.wire import Context


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


def test_aliases_answer_like_the_method_itself() -> None:
    bound = Registry([spec_of(some)]).bind(Context(), {"eth"}, HTTP)
    assert bound["eth_other"].invoke(["0x1"], None) == bound["eth_some"].invoke(["0x1"], None) == 20


def test_a_method_file_is_imported_at_the_first_use_of_its_methods() -> None:
    known = Registry(files=[MethodFile("tests.unit.rpc.wire", ("eth",)), MethodFile("tests.nowhere", ("eth", "x"))])
    found = known.bind(Context(), {"eth"}, HTTP)
    assert found.get("other_method") is None
    assert found.get("eth_blockNumber") is not None
    assert found["eth_getCode"].name == "eth_getCode"
    with pytest.raises(ModuleNotFoundError):
        found.get("eth_somethingElse")
    assert found.get("eth_somethingElse") is None


def test_every_file_of_methods_says_which_groups_are_in_it() -> None:
    all_methods().specs  # noqa: B018 - loads them
    for file in method_files():
        found = Registry.of([sys.modules[file.module]])
        assert {group_of(name) for spec in found.specs for name in spec.names} == set(file.groups), file.module
    files = {path.stem for path in Path(methods.__file__).parent.glob("*.py")} - {"__init__", "fork_config"}
    assert {file.module.rpartition(".")[2] for file in method_files()} == files
