"""The examples of the methods, which docs/rpc repeats, are correct on the sample chain."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ophion.node.config import NodeConfig
from ophion.rpc.methods import all_methods
from ophion.rpc.schema.registry import Example, MethodSpec
from tests.conftest import DATA
from tests.unit.rpc.interface import Interface, import_chain, open_interface

EXAMPLES = [(spec, example) for spec in all_methods().specs for example in spec.examples]


@pytest.fixture(scope="module")
def interface(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    path = tmp_path_factory.mktemp("examples")
    genesis = import_chain(path, DATA / "original-chain/genesis.json", DATA / "original-chain/test.blocks")
    with open_interface(path, genesis, NodeConfig()) as opened:
        yield opened


@pytest.mark.parametrize(("spec", "example"), EXAMPLES, ids=lambda value: getattr(value, "name", None))
def test_example(interface: Interface, spec: MethodSpec, example: Example) -> None:
    for name in spec.names:
        assert interface.ask(name, *example.params) == example.result
