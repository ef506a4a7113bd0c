"""An operator rotates a validator key on a running network, step by step."""

from __future__ import annotations

from pathlib import Path

from ophion.testing.network import TestNetwork
from tests.integration.command import Finished, ophion


def test_a_rotation_is_checked_at_each_step(tmp_path: Path) -> None:
    with TestNetwork(tmp_path, "qbft", validators=2, followers=1) as network:
        old, new = (f"0x{network.keys[index].address.hex()}" for index in (1, 2))
        urls = ",".join(f"http://127.0.0.1:{node.ports['json-rpc']}" for node in network.nodes)

        def check() -> Finished:
            return ophion("keys", "check-rotation", f"--rpc={urls}", f"--old={old}", f"--new={new}")

        network.wait(lambda: min(network.heights()) >= 2, 60, "the second block")
        assert "next  The new key is a validator.\n      0 of 2 votes are cast. Call qbft_propose" in check().out
        for node in network.nodes[:2]:
            node.rpc("qbft_proposeValidatorVote", new, True)
        network.wait(lambda: "done  The new key produces blocks." in check().out, 60, "blocks of the new key")
        assert "next  The old key is no validator." in check().out
        for node in (network.nodes[0], network.nodes[2]):
            node.rpc("qbft_proposeValidatorVote", old, False)
        network.wait(lambda: "done  The old key is no validator." in check().out, 60, "the vote")
        for node in network.nodes:
            for address in (old, new):
                node.rpc("qbft_discardValidatorVote", address)
        network.wait(lambda: check().code == 0, 60, "the end of the rotation")
        assert "Destroy the old key." in check().out
