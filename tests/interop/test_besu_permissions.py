"""Tests Besu in a network with permission contracts from `ophion permissions genesis`.

One validator of each client uses the same contracts for accounts and nodes. The `ophion` command changes the rules
through the Besu node. Needs BESU=path/to/its/start/script.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, NODE_INGRESS
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import Finished, ophion
from tests.interop.besu import Besu, needs_besu
from tests.interop.partner import check_agreement, end_all, mixed_network

pytestmark = needs_besu
ADMIN, LISTED, OTHER = DEV_KEYS
BY_CONTRACT = (
    "--permissions-accounts-contract-enabled",
    f"--permissions-accounts-contract-address=0x{ACCOUNT_INGRESS.hex()}",
    "--permissions-nodes-contract-enabled",
    f"--permissions-nodes-contract-address=0x{NODE_INGRESS.hex()}",
)


class Ruled:
    """Two validators that use the contracts, and an Ophion node that uses no contracts and is not listed in the
    contracts.
    """

    def __init__(self, path: Path, version: int) -> None:
        rules = (*BY_CONTRACT, f"--permissions-nodes-contract-version={version}")
        self.network = mixed_network(TestNetwork(path, "qbft", 2, followers=1, own={0: rules}))
        keys_and_ports = zip(self.network.keys, self.network.ports, strict=True)
        self.enodes = [f"enode://{key.public_key.hex()}@127.0.0.1:{port}" for key, port in keys_and_ports]
        ophion(
            *("permissions", "genesis", f"--admin=0x{ADMIN.address.hex()}", f"--nodes-contract-version={version}"),
            *(f"--from={self.network.genesis_file}", f"--to={self.network.genesis_file}"),
            f"--permitted-accounts=0x{LISTED.address.hex()}",
            f"--permitted-nodes={','.join(self.enodes[:2])}",
        ).succeeded()
        self.ours, self.stranger = self.network.nodes[0], self.network.nodes[2]
        self.besu = Besu(self.network, 1, rules)
        self.key_file = path / "admin.key"
        self.key_file.write_text(ADMIN.secret().hex())

    def command(self, *words: str) -> Finished:
        """Run `ophion permissions` with the Besu node."""
        return ophion("permissions", *words, f"--rpc=http://127.0.0.1:{self.besu.rpc_port}")

    def besu_knows_stranger(self) -> bool:
        return any(peer["id"].endswith(self.network.keys[2].public_key.hex()) for peer in self.besu.rpc("admin_peers"))


@contextmanager
def ruled(path: Path, version: int) -> Iterator[Ruled]:
    made = Ruled(path, version)
    try:
        # start Ophion first: Besu accepts no peers until it has the chain, and dials static nodes only once a minute
        made.ours.start()
        made.besu.start()
        made.besu.wait()
        wait_for(lambda: made.ours.height >= 2, 120, "the second block")
        yield made
    finally:
        end_all(made.network, (0, 2), [made.besu])


@pytest.mark.parametrize("version", [1, 2])
def test_both_keep_the_rules_of_the_contracts(tmp_path: Path, version: int) -> None:
    with ruled(tmp_path, version) as made:
        network, besu, ours = made.network, made.besu, made.ours
        # both clients refuse an unlisted node, and no block contains its transactions
        made.stranger.start()
        raw = "0x" + legacy_transaction(OTHER, 0, chain_id=CHAIN_ID).hex()
        hash = ours.rpc("eth_sendRawTransaction", raw)
        besu.rpc("eth_sendRawTransaction", raw)
        welcome = "0x" + legacy_transaction(LISTED, 0, chain_id=CHAIN_ID).hex()
        ours.receipt(besu.rpc("eth_sendRawTransaction", welcome), 30)
        network.grow(6, 60, (0,))
        assert ours.rpc("eth_getTransactionReceipt", hash) is None
        assert made.stranger.height == 0, "Besu says goodbye after the hello, before it tells of its chain"
        assert not made.besu_knows_stranger()
        # the command reads the rules through Besu, and changes the rules for both clients
        shown = made.command("list").succeeded().out
        assert all(enode in shown for enode in made.enodes[:2]), shown
        signed = f"--key-file={made.key_file}"
        made.command("add", f"0x{OTHER.address.hex()}", signed).succeeded()
        made.command("add", made.enodes[2], signed).succeeded()
        for one in (ours, besu):
            one.rpc("eth_sendRawTransaction", raw)
        number = int(ours.receipt(hash)["blockNumber"], 16)
        wait_for(lambda: len(made.stranger.rpc("admin_peers")) == 2, 90, "the node that is no stranger any more")
        wait_for(lambda: made.stranger.height >= number, 30, "its chain")
        made.command("remove", made.enodes[2], signed).succeeded()
        wait_for(lambda: not made.besu_knows_stranger(), 30, "the end of its connection with Besu")
        network.grow(2, 60, (0,))
        check_agreement(network, (0,), [besu], network.height(0) - 1)
