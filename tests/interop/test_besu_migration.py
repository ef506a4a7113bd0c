"""Besu in networks that migrate: from IBFT 2.0 to QBFT at a block, and from Besu validators to Ophion one by one."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import RpcFailure
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.interop.besu import Besu, needs_besu
from tests.interop.partner import Partner, end_all, mixed_network

pytestmark = needs_besu

FIRST = 8
PERIOD_S = 3
FIRST_VERSION = 26
"""First Besu version (named by its year) whose migration works in every order of its protocols."""
TIMEOUT_S = 8
PERMISSIONS = ("--permissions-nodes-config-file-enabled", "--permissions-accounts-config-file-enabled")
APIS = "--rpc-http-api=ADMIN,ETH,NET,WEB3,QBFT,PERM"
LISTED, UNLISTED = DEV_KEYS[:2]
LIMIT_S = 300.0
"""Time limit of each wait in seconds. Java starts slowly, and test machines are busy."""


def _version(besu: Partner) -> int | None:
    """Return the year in the version of a Besu, or None while the node does not answer."""
    try:
        found = re.search(r"/v?(\d+)\.", str(besu.rpc("web3_clientVersion")))
    except OSError:
        return None
    return None if found is None else int(found[1])


def _header(node: object, number: int) -> tuple[str, str]:
    block = node.rpc("eth_getBlockByNumber", hex(number), False)  # type: ignore[attr-defined]
    return block["hash"], block["stateRoot"]


def test_two_of_each_move_from_ibft2_to_qbft(tmp_path: Path) -> None:
    """Every block of both eras is the same at all nodes, and a new Besu verifies the chain from genesis."""
    network = mixed_network(
        TestNetwork(tmp_path, "ibft2", validators=4, followers=1, period_s=PERIOD_S, timeout_s=TIMEOUT_S)
    )
    genesis = json.loads(network.genesis_file.read_text())
    genesis["config"]["qbft"] = {**genesis["config"]["ibft2"], "startBlock": FIRST}
    network.genesis_file.write_text(json.dumps(genesis))
    theirs: list[Partner] = [Besu(network, index) for index in (2, 3)]
    newcomer = Besu(network, 4)
    ours = (0, 1)
    try:
        for one in theirs:
            one.start()
        wait_for(lambda: _version(theirs[0]) is not None, LIMIT_S, "the answer of Besu")
        if (_version(theirs[0]) or 0) < FIRST_VERSION:
            pytest.skip("this Besu stops at the start block: it fails to create the first QBFT block")
        for index in ours:
            network.nodes[index].start()
        network.wait(lambda: min(network.heights(ours)) >= FIRST + 4, LIMIT_S, "QBFT blocks")
        times = [
            int(network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False)["timestamp"], 16)
            for number in (FIRST - 1, FIRST)
        ]
        print(f"seconds between the last IBFT 2.0 and the first QBFT block: {times[1] - times[0]} (period {PERIOD_S})")
        last = FIRST + 4
        for one in theirs:
            wait_for(lambda one=one: one.height >= last, LIMIT_S, f"block {last} at Besu")  # type: ignore[misc]
        newcomer.start()
        newcomer.wait()
        wait_for(lambda: newcomer.height >= last, LIMIT_S, "the chain at a new Besu")
        for number in range(last + 1):
            found = {_header(node, number) for node in (*(network.nodes[index] for index in ours), *theirs, newcomer)}
            assert len(found) == 1, (number, found)
        makers = {
            network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False)["miner"]
            for number in range(FIRST, network.height(0))
        }
        print(f"makers of QBFT blocks: {len(makers)} of 4")
    finally:
        end_all(network, ours, [*theirs, newcomer])


def _permission_file(network: TestNetwork) -> str:
    """Return a file that permits the nodes of the network and one account."""
    enodes = [
        f"enode://{key.public_key.hex()}@127.0.0.1:{port}"
        for key, port in zip(network.keys, network.ports, strict=True)
    ]
    accounts = ["0x" + LISTED.address.hex()]
    return f"accounts-allowlist={json.dumps(accounts)}\nnodes-allowlist={json.dumps(enodes)}\n"


def test_four_validators_are_replaced_one_by_one_and_one_goes_back(tmp_path: Path) -> None:
    """Each Besu stops, `ophion migrate --from-besu` moves its data and its permission file, and Ophion continues with
    the same key.
    """
    pytest.importorskip("rocksdict", reason="the extra ophion[migrate] is not installed")
    own = dict.fromkeys(range(4), (*PERMISSIONS, APIS))
    network = mixed_network(
        TestNetwork(tmp_path, "qbft", validators=4, followers=1, period_s=PERIOD_S, timeout_s=TIMEOUT_S, own=own)
    )
    besus = [Besu(network, index, PERMISSIONS) for index in range(4)]
    for one in besus:
        (one.path / "permissions_config.toml").write_text(_permission_file(network))
    unlisted = "0x" + legacy_transaction(UNLISTED, 0, chain_id=CHAIN_ID, gas_price=1).hex()
    candidate = "0x" + network.keys[4].address.hex()
    replaced: list[int] = []
    try:
        for one in besus:
            one.start()
        for one in besus:
            one.wait()
        wait_for(lambda: min(one.height for one in besus) >= 3, LIMIT_S, "blocks of Besu")
        for nonce in range(3):
            raw = legacy_transaction(LISTED, nonce, chain_id=CHAIN_ID, gas_price=1)
            besus[3].rpc("eth_sendRawTransaction", "0x" + raw.hex())
        # a new validator needs three votes: two come from Besu nodes, and the third comes from an Ophion node
        for one in besus[:2]:
            one.propose(candidate, True)
        rules = {
            method: sorted(besus[0].rpc(method)) for method in ("perm_getNodesAllowlist", "perm_getAccountsAllowlist")
        }
        assert len(rules["perm_getNodesAllowlist"]) == 5
        assert besus[0].rpc("eth_sendRawTransaction", unlisted) is None, "Besu refuses it"
        first = besus[3].height
        wait_for(lambda: besus[3].height >= first + 6, LIMIT_S, "blocks with votes")
        for index, besu in enumerate(besus):
            besu.stop()
            done = ophion(
                "migrate",
                f"--from-besu={besu.path}",
                f"--data-path={network.data_path(index)}",
                f"--genesis-file={network.genesis_file}",
            ).succeeded()
            assert "equals Besu's" in done.out
            network.nodes[index].start()
            replaced.append(index)
            began, goal = time.monotonic(), network.height(index) + 5
            network.wait(lambda index=index, goal=goal: network.height(index) >= goal, LIMIT_S, "blocks")  # type: ignore[misc]
            print(f"validator {index} replaced; five more blocks in {time.monotonic() - began:.0f} s")
            if index == 2:
                network.nodes[2].rpc("qbft_proposeValidatorVote", candidate, True)
        validators = "qbft_getValidatorsByBlockNumber"
        network.wait(lambda: candidate in network.nodes[3].rpc(validators, "latest"), LIMIT_S, "the third vote")
        assert network.agrees(range(4))
        for node in network.nodes[:4]:
            assert {method: sorted(node.rpc(method)) for method in rules} == rules
            with pytest.raises(RpcFailure, match="not authorized"):
                node.rpc("eth_sendRawTransaction", unlisted)
        network.nodes[0].receipt(network.nodes[0].send(legacy_transaction(LISTED, 3, chain_id=CHAIN_ID, gas_price=1)))
        # one goes back: Besu continues with the data that it left
        network.nodes[0].kill()
        replaced.remove(0)
        besus[0].start()
        besus[0].wait()
        wait_for(lambda: besus[0].height >= network.height(1), LIMIT_S, "the chain at the old Besu")
        network.grow(4, LIMIT_S, replaced)
        number = network.height(1) - 1
        wait_for(lambda: besus[0].height >= number, LIMIT_S, "its new blocks")
        for height in range(number + 1):
            assert len({_header(node, height) for node in (*network.nodes[1:4], besus[0])}) == 1
        assert candidate in besus[0].rpc(validators, "latest")
    finally:
        end_all(network, replaced, besus)
