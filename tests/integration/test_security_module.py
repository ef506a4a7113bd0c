"""Tests real validators whose keys are in a SoftHSM token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ophion.native.crypto import address_of
from ophion.testing.network import TestNetwork, network_genesis
from tests.integration.command import ophion
from tests.unit.wallet.softhsm import LIBRARY, REASON, SoftHsm

pytestmark = pytest.mark.skipif(not LIBRARY, reason=REASON)


@pytest.mark.parametrize("engine", ["qbft", "clique"])
def test_four_validators_with_keys_in_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    pytest.importorskip("pkcs11", reason="python-pkcs11 is not installed")
    labels = [f"validator{index}" for index in range(4)]
    token = SoftHsm(tmp_path / "hsm", *labels)
    monkeypatch.setenv("SOFTHSM2_CONF", str(token.config))
    own = {index: token.options(label) for index, label in enumerate(labels)}
    network = TestNetwork(tmp_path, engine, 4, own=own)
    members = sorted(address_of(key) for key in token.public_keys)
    network.genesis_file.write_text(json.dumps(network_genesis(engine, members, 1, 2)))
    with network:
        network.wait(lambda: min(network.heights()) >= 6, 60, "the sixth block")
        blocks = [network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False) for number in range(2, 7)]
        if engine == "qbft":
            assert {block["miner"] for block in blocks} <= {f"0x{member.hex()}" for member in members}
        assert network.agrees()


def test_a_wrong_label_ends_the_start_with_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pkcs11", reason="python-pkcs11 is not installed")
    token = SoftHsm(tmp_path / "hsm", "validator")
    monkeypatch.setenv("SOFTHSM2_CONF", str(token.config))
    network = TestNetwork(tmp_path, "qbft", 1)
    arguments = (f"--data-path={tmp_path / 'node0'}", f"--genesis-file={network.genesis_file}", "--p2p-enabled=false")
    failed = ophion(*arguments, *token.options("missing"))
    assert failed.code != 0
    assert "key missing: the token has no private keys with this label" in failed.err
    assert "Traceback" not in failed.err
