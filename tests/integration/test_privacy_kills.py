"""Members of a group are killed at random moments while private transactions are sent.

Afterwards both members have executed every acknowledged transaction and have the same state. The default is three
kills; `OPHION_KILLS=50` makes fifty.
"""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

from ophion.enclave.group_ids import legacy_id
from ophion.native.crypto import PrivateKey
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.private_transactions import GET, NUMBER_CONTRACT, PrivateClient, set_number, text
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for

KILLS = int(os.environ.get("OPHION_KILLS", "3"))
LIMIT_S = 120.0


class Sender(threading.Thread):
    """Sends transactions to the given member, and records the acknowledged transactions."""

    def __init__(self, url: str, key: int, enclave_key: bytes, other: bytes, group: bytes, contract: str) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[str] = []
        self.is_over = False
        self._url = url
        self._key = PrivateKey((0xBEEF + key).to_bytes(32, "big"))
        self._members = (enclave_key, other)
        self._group = group
        self._contract = contract

    def run(self) -> None:
        from ophion.cli.node_client import RpcNode
        from ophion.errors import CommandError
        from ophion.native.privacy import sign_private_transaction

        node, nonce = RpcNode(self._url), None
        while not self.is_over:
            try:
                if nonce is None:
                    asked = node.ask("priv_getTransactionCount", "0x" + self._key.address.hex(), text(self._group))
                    nonce = int(asked, 16)
                raw = sign_private_transaction(
                    self._key.secret(),
                    nonce=nonce,
                    gas_price=0,
                    gas_limit=100_000,
                    to=bytes.fromhex(self._contract[2:]),
                    data=set_number(nonce),
                    private_from=self._members[0],
                    private_for=[self._members[1]],
                    chain_id=CHAIN_ID,
                )
                self.acknowledged.append(node.ask("eea_sendRawTransaction", "0x" + raw.hex()))
                nonce += 1
            except CommandError:
                nonce = None  # the member is down, so read its nonce again after its restart
                time.sleep(0.05)


def test_nothing_acknowledged_is_lost_and_states_stay_equal(tmp_path: Path) -> None:
    chance = random.Random(17)
    options = ("--privacy-enabled", "--privacy-delivery=queue")
    with TestNetwork(tmp_path, "qbft", validators=1, followers=2, options=options) as network:
        # the validator is no member of the group, so blocks continue during the kills
        nodes = network.nodes[1:]
        a, b = (PrivateClient(node, key, CHAIN_ID) for node, key in zip(nodes, DEV_KEYS, strict=False))
        for node in nodes:
            wait_for(lambda node=node: len(node.rpc("priv_status")["peers"]) >= 1, LIMIT_S, "the other enclave")
        group = legacy_id([a.enclave_key, b.enclave_key])
        contract = a.receipt(a.send(NUMBER_CONTRACT, private_for=(b.enclave_key,)))["contractAddress"]
        acknowledged: list[str] = []
        for kill in range(KILLS):
            senders = [
                Sender(f"http://127.0.0.1:{one.node.ports['json-rpc']}", 3 + place, one.enclave_key, other.enclave_key,
                       group, contract)
                for place, (one, other) in enumerate(((a, b), (b, a)))
            ]  # fmt: skip
            for sender in senders:
                sender.start()
            for sender in senders:
                wait_for(lambda sender=sender: sender.acknowledged, LIMIT_S, "the first acknowledgement")
            time.sleep(chance.uniform(0.0, 1.2))
            victim = 1 + kill % 2
            network.kill(victim)
            time.sleep(chance.uniform(0.0, 0.8))
            for sender in senders:
                sender.is_over = True
            for sender in senders:
                sender.join(LIMIT_S)
                acknowledged += sender.acknowledged
            network.nodes[victim].start()
        assert len(acknowledged) > KILLS

        def is_mined(marker: str) -> bool:
            return network.nodes[0].rpc("eth_getTransactionReceipt", marker) is not None

        for marker in acknowledged:
            wait_for(lambda marker=marker: is_mined(marker), LIMIT_S, f"the block of {marker}")
        number = network.height(0)
        for node in nodes:
            wait_for(lambda node=node: node.height >= number, LIMIT_S, f"block {number}")

        def roots() -> set[str]:
            return {node.rpc("priv_debugGetStateRoot", text(group), hex(number)) for node in nodes}

        wait_for(lambda: len(roots()) == 1, LIMIT_S, "one root")
        for node in nodes:
            for marker in acknowledged:
                assert node.rpc("priv_getTransactionReceipt", marker) is not None, f"{marker} was acknowledged"
        call = {"to": contract, "data": GET}
        assert len({node.rpc("priv_call", text(group), call, hex(number)) for node in nodes}) == 1
