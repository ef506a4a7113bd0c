"""Four Besu validators with permission contracts and open votes are replaced by Ophion one by one, and one goes back.

The rules for accounts and nodes are contracts, which the administrator changes while Besu and Ophion run together.
Each data path is written by `ophion migrate --from-besu` alone. Needs BESU=path/to/its/start/script.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, NODE_INGRESS
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.interop.besu import Besu, needs_besu
from tests.interop.partner import end_all, mixed_network

pytestmark = needs_besu
pytest.importorskip("rocksdict", reason="the extra ophion[migrate] is not installed")

ADMIN, LISTED, OTHER = DEV_KEYS
LIMIT_S = 300.0
"""Time limit of each wait in seconds. Java starts slowly, and test machines are busy."""
VALIDATORS = "qbft_getValidatorsByBlockNumber"
RULES = (
    "--permissions-accounts-contract-enabled",
    f"--permissions-accounts-contract-address=0x{ACCOUNT_INGRESS.hex()}",
    "--permissions-nodes-contract-enabled",
    f"--permissions-nodes-contract-address=0x{NODE_INGRESS.hex()}",
)


class Ruled:
    """Four validators and a follower that the node rules do not list at first."""

    def __init__(self, path: Path, version: int) -> None:
        rules = (*RULES, f"--permissions-nodes-contract-version={version}")
        network = TestNetwork(path, "qbft", 4, followers=1, period_s=3, timeout_s=8, own=dict.fromkeys(range(4), rules))
        self.network = mixed_network(network)
        keys_and_ports = zip(network.keys, network.ports, strict=True)
        self.enodes = [f"enode://{key.public_key.hex()}@127.0.0.1:{port}" for key, port in keys_and_ports]
        ophion(
            *("permissions", "genesis", f"--admin=0x{ADMIN.address.hex()}", f"--nodes-contract-version={version}"),
            *(f"--from={network.genesis_file}", f"--to={network.genesis_file}"),
            f"--permitted-accounts=0x{LISTED.address.hex()}",
            f"--permitted-nodes={','.join(self.enodes[:4])}",
        ).succeeded()
        # a Besu accepts connections only when its chain is complete, so the first node starts without rules
        # Forest: with Bonsai, a restarted Besu 24.5.4 sometimes does not find the contract and stops
        self.rules = (*rules, "--data-storage-format=FOREST")
        self.besus = [Besu(network, index, self.rules if index else self.rules[-1:]) for index in range(4)]
        self.replaced: list[int] = []
        self._key_file = path / "admin.key"
        self._key_file.write_text(ADMIN.secret().hex())

    def permissions(self, index: int, *words: str) -> str:
        """Run `ophion permissions` with the node at this index, whichever client it is."""
        node = self.network.nodes[index]
        port = node.ports["json-rpc"] if index in self.replaced else self.besus[index].rpc_port
        signed = [] if words[0] == "list" else [f"--key-file={self._key_file}"]
        return ophion("permissions", *words, f"--rpc=http://127.0.0.1:{port}", *signed).succeeded().out

    def replace(self, index: int) -> None:
        """Stop a Besu, move its data to an empty data path, and start Ophion there."""
        self.besus[index].stop()
        data_path = self.network.data_path(index)
        shutil.rmtree(data_path)
        done = ophion(
            "migrate",
            f"--from-besu={self.besus[index].path}",
            f"--data-path={data_path}",
            f"--genesis-file={self.network.genesis_file}",
        ).succeeded()
        assert "equals Besu's" in done.out
        self.network.nodes[index].start()
        self.replaced.append(index)

    def header(self, node: object, number: int) -> tuple[str, str]:
        block = node.rpc("eth_getBlockByNumber", hex(number), False)  # type: ignore[attr-defined]
        return block["hash"], block["stateRoot"]

    def peers(self, index: int) -> set[str]:
        """Return the ids of the peers of a node of Ophion."""
        return {str(peer["id"]).removeprefix("0x") for peer in self.network.nodes[index].rpc("admin_peers")}


@pytest.mark.parametrize("version", [2, 1])
def test_rules_and_votes_outlive_the_replacement_of_every_validator(tmp_path: Path, version: int) -> None:
    made = Ruled(tmp_path, version)
    network, besus = made.network, made.besus
    raw = "0x" + legacy_transaction(OTHER, 0, chain_id=CHAIN_ID, gas_price=1).hex()
    stranger, ids = network.nodes[4], [key.public_key.hex() for key in network.keys]
    leaving = "0x" + network.keys[3].address.hex()
    try:
        for one in besus:
            one.start()
        for one in besus:
            one.wait()
        wait_for(lambda: min(one.height for one in besus) >= 3, LIMIT_S, "blocks of Besu")
        besus[0].stop()
        besus[0].options = made.rules
        besus[0].start()
        besus[0].wait()
        listed = besus[0].rpc(
            "eth_sendRawTransaction",
            "0x" + legacy_transaction(LISTED, 0, chain_id=CHAIN_ID, gas_price=1).hex(),
        )
        wait_for(lambda: besus[3].rpc("eth_getTransactionReceipt", listed) is not None, LIMIT_S, "the transaction")
        assert besus[0].rpc("eth_sendRawTransaction", raw) is None, "Besu refuses it"
        rules = made.permissions(0, "list")
        # of the three votes that each change needs, two are in blocks before the first exchange
        for one in besus[:2]:
            one.propose(leaving, False)
        first = besus[3].height
        wait_for(lambda: besus[3].height >= first + 6, LIMIT_S, "blocks with votes")
        stranger.start()
        for index in range(4):
            made.replace(index)
            began, goal = time.monotonic(), network.height(index) + 5
            network.wait(lambda index=index, goal=goal: network.height(index) >= goal, LIMIT_S, "blocks")  # type: ignore[misc]
            print(f"validator {index} replaced; five more blocks in {time.monotonic() - began:.0f} s")
            others = {ids[other] for other in range(4) if other != index}
            network.wait(lambda index=index, others=others: made.peers(index) == others, LIMIT_S, "its peers")  # type: ignore[misc]
            if index == 0:
                # the administrator changes the rules through Ophion while three validators are Besu
                # Besu asks the contract at admission, Ophion when it builds a block
                forbidden = network.nodes[0].rpc("eth_sendRawTransaction", raw)
                network.grow(4, LIMIT_S, made.replaced)
                assert besus[3].rpc("eth_getTransactionReceipt", forbidden) is None
                assert made.permissions(0, "list") == rules
                made.permissions(0, "add", f"0x{OTHER.address.hex()}")
                besus[3].rpc("eth_sendRawTransaction", raw)
                network.wait(
                    lambda hash=forbidden: besus[3].rpc("eth_getTransactionReceipt", hash) is not None,  # type: ignore[misc]
                    LIMIT_S,
                    "the transaction of the account that was listed through Ophion",
                )
            if index == 1:
                # and through Besu while two are Ophion
                made.permissions(3, "remove", f"0x{OTHER.address.hex()}")
                again = "0x" + legacy_transaction(OTHER, 1, chain_id=CHAIN_ID, gas_price=1).hex()
                forbidden = network.nodes[1].rpc("eth_sendRawTransaction", again)
        assert stranger.height == 0
        assert network.nodes[0].rpc("eth_getTransactionReceipt", forbidden) is None
        assert made.permissions(3, "list") == rules
        # the third vote comes from Ophion: with the two that Besu cast it is a majority
        assert leaving in network.nodes[0].rpc(VALIDATORS, "latest")
        network.nodes[2].rpc("qbft_proposeValidatorVote", leaving, False)
        network.wait(lambda: leaving not in network.nodes[0].rpc(VALIDATORS, "latest"), LIMIT_S, "the third vote")
        made.permissions(0, "add", made.enodes[4])
        network.wait(lambda: stranger.height >= 3, LIMIT_S, "the chain at the node that is listed now")
        # one goes back: Besu continues with the data that it left, under the rules as they are now
        network.nodes[0].kill()
        made.replaced.remove(0)
        besus[0].start()
        besus[0].wait()
        wait_for(lambda: besus[0].height >= network.height(1), LIMIT_S, "the chain at the old Besu")
        network.grow(4, LIMIT_S, made.replaced)
        number = network.height(1) - 1
        wait_for(lambda: besus[0].height >= number, LIMIT_S, "its new blocks")
        for height in range(number + 1):
            assert len({made.header(node, height) for node in (*network.nodes[1:4], besus[0])}) == 1
        assert json.dumps(besus[0].rpc(VALIDATORS, "latest")) == json.dumps(network.nodes[1].rpc(VALIDATORS, "latest"))
        assert besus[0].rpc("eth_sendRawTransaction", again) is None, (
            "Besu refuses the account that is not listed any more"
        )
    finally:
        end_all(network, [*made.replaced, 4], besus)
