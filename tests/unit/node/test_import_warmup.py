"""Tests the modules that a node imports after its start."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ophion.node.config import NodeConfig
from ophion.node.import_warmup import ImportWarmup
from ophion.node.interface_options import ApiGroup, HttpConfig
from ophion.rpc.methods import all_methods
from tests.unit.node.test_services import interface


def test_what_most_clients_ask_for_is_loaded_after_the_start_and_nothing_else(tmp_path: Path) -> None:
    all_methods.cache_clear()
    built = interface(tmp_path, NodeConfig(http=HttpConfig(enabled=True)))
    asyncio.run(ImportWarmup(built.listening).warm())
    methods = all_methods()
    assert not methods.load_more("eth")
    assert not methods.load_more("net")
    assert methods.load_more("trace")


def test_traces_are_loaded_if_a_service_offers_them(tmp_path: Path) -> None:
    all_methods.cache_clear()
    groups = (ApiGroup.ETH, ApiGroup.TRACE)
    built = interface(tmp_path, NodeConfig(http=HttpConfig(enabled=True, groups=groups)))
    warmup = next(service for service in built.services if isinstance(service, ImportWarmup))
    asyncio.run(warmup.warm())
    assert not all_methods().load_more("trace")
    assert all_methods().load_more("debug")


def test_a_node_without_clients_loads_nothing_for_them(tmp_path: Path) -> None:
    all_methods.cache_clear()
    asyncio.run(ImportWarmup(interface(tmp_path, NodeConfig()).listening).warm())
    assert all_methods().load_more("eth")
