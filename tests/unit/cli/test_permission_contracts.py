"""Permission contracts of a hostile node: the commands end with one error."""

from __future__ import annotations

import pytest

from ophion.cli.node_client import RpcNode
from ophion.cli.permission_contracts import RulesContracts
from ophion.errors import CommandError
from tests.unit.hostile_node import hostile_node


def test_a_number_of_entries_without_end_is_refused() -> None:
    with hostile_node() as node:
        node.answers = {"eth_call": "0x" + "ff" * 32}
        rules = RulesContracts(RpcNode(node.url))
        with pytest.raises(CommandError, match="entries; at most 100000 can be listed"):
            list(rules.accounts())


def test_more_addresses_than_there_are_bytes_are_refused() -> None:
    with hostile_node() as node:
        node.answers = {"eth_call": "0x" + "00" * 31 + "20"}
        rules = RulesContracts(RpcNode(node.url))
        node.answers = {"eth_call": "0x" + "ff" * 64}
        with pytest.raises(CommandError, match="fewer addresses than it announces"):
            rules.admins()
