"""Tests the block producers of the next block."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.chain.block_producers import BlockProducers
from ophion.chain.chain import Chain
from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import InvalidBlock
from ophion.native.store import open_store
from ophion.primitives.types import ZERO_ADDRESS
from ophion.testing.bft_chain import KEYS, bft_genesis_text


def makers(path: Path, genesis: Genesis) -> BlockProducers:
    return BlockProducers(Chain.open(open_store(path, durable=False), genesis, engine_for(genesis.spec)))


def test_validators_are_asked_for_once_a_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = makers(tmp_path, parse_genesis(bft_genesis_text("qbft", 4)))
    assert found.of_head() == {key.address for key in KEYS[:4]}
    monkeypatch.setattr(found._chain.engine, "members", None)
    assert KEYS[0].address in found
    assert KEYS[5].address not in found


def test_there_is_none_under_proof_of_work_or_if_the_validators_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anybody = makers(tmp_path / "dev", dev_genesis())
    assert ZERO_ADDRESS not in anybody
    assert not anybody.of_head()
    unknown = makers(tmp_path / "qbft", parse_genesis(bft_genesis_text("qbft", 4)))

    def no_members(*arguments: object) -> None:
        raise InvalidBlock("validators", "the contract names none")

    monkeypatch.setattr(unknown._chain.engine, "members", no_members)
    assert not unknown.of_head()
