"""Tests declarations of methods."""

from __future__ import annotations

from ophion.rpc.methods import all_methods
from ophion.rpc.schema.registry import group_names


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
