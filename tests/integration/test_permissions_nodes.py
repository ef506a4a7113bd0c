"""Permissioned networks, set up like operators do: contracts in the genesis, lists in files, real nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.native.crypto import PrivateKey
from ophion.permissions.audit import NAME as AUDIT
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, NODE_INGRESS
from ophion.testing.node_process import NodeProcess, RpcFailure
from ophion.testing.ports import free_ports
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import Finished, ophion
from tests.integration.test_auth_node import post

ADMIN, LISTED, OTHER = DEV_KEYS
KEYS = [PrivateKey(bytes([number]) * 32) for number in (1, 2, 3)]
APIS = "--rpc-http-api=ADMIN,NET,ETH,PERM,TXPOOL"
CHAIN_ID = 2018
BY_CONTRACT = (
    "--permissions-accounts-contract-enabled",
    f"--permissions-accounts-contract-address=0x{ACCOUNT_INGRESS.hex()}",
    "--permissions-nodes-contract-enabled",
    f"--permissions-nodes-contract-address=0x{NODE_INGRESS.hex()}",
)


class Network:
    """A QBFT network of one validator and followers, without discovery."""

    def __init__(self, folder: Path, *genesis_options: str, validators: int = 1) -> None:
        self.folder = folder
        self.ports = free_ports(len(KEYS))
        self.enodes = [
            f"enode://{key.public_key.hex()}@127.0.0.1:{port}" for key, port in zip(KEYS, self.ports, strict=True)
        ]
        (folder / "admin.key").write_text(ADMIN.secret().hex())
        for number, key in enumerate(KEYS):
            (folder / f"{number}.key").write_text(key.secret().hex())
        description = {
            "genesis": {
                "config": {"chainId": CHAIN_ID, "londonBlock": 0, "qbft": {"blockperiodseconds": 1}},
                "gasLimit": "0x1fffffffffffff",
                "difficulty": "0x1",
                "alloc": {key.address.hex(): {"balance": str(10**24)} for key in DEV_KEYS},
            },
            "blockchain": {"nodes": {"keys": [key.public_key.hex() for key in KEYS[:validators]]}},
        }
        (folder / "network.json").write_text(json.dumps(description))
        ophion(
            "operator", "generate-blockchain-config", f"--config-file={folder}/network.json", f"--to={folder}/made"
        ).succeeded()
        self.genesis = folder / "made" / "genesis.json"
        if genesis_options:
            done = ophion(
                "permissions", "genesis", f"--from={self.genesis}", f"--to={self.genesis}", *genesis_options
            ).succeeded()
            assert "--permissions-accounts-contract-enabled" in done.out

    def node(self, number: int, *options: str) -> NodeProcess:
        return NodeProcess(
            self.folder / f"node-{number}",
            f"--genesis-file={self.genesis}",
            f"--node-private-key-file={self.folder}/{number}.key",
            "--p2p-interface=127.0.0.1",
            f"--p2p-port={self.ports[number]}",
            "--discovery-enabled=false",
            "--min-gas-price=0",
            APIS,
            *options,
        )

    def command(self, process: NodeProcess, *words: str) -> Finished:
        rpc = f"--rpc=http://127.0.0.1:{process.ports['json-rpc']}"
        return ophion("permissions", *words, rpc, f"--key-file={self.folder}/admin.key")

    def listed(self, process: NodeProcess) -> str:
        return ophion("permissions", "list", f"--rpc=http://127.0.0.1:{process.ports['json-rpc']}").succeeded().out


def peers(process: NodeProcess) -> set[str]:
    return {peer["id"] for peer in process.rpc("admin_peers")}


def dial_again(process: NodeProcess, url: str) -> None:
    """Let the node dial a peer at once, to shorten the test."""
    process.rpc("admin_removePeer", url)
    process.rpc("admin_addPeer", url)


def node_id(number: int) -> str:
    return "0x" + KEYS[number].public_key.hex()


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Network, NodeProcess, NodeProcess]]:
    folder = tmp_path_factory.mktemp("ruled")
    network = Network(folder)
    first = network.enodes[:2]
    ophion(
        *("permissions", "genesis", f"--from={network.genesis}", f"--to={network.genesis}"),
        f"--admin=0x{ADMIN.address.hex()}",
        f"--permitted-accounts=0x{LISTED.address.hex()}",
        f"--permitted-nodes={','.join(first)}",
    ).succeeded()
    with network.node(0, *BY_CONTRACT) as validator, network.node(1, *BY_CONTRACT) as follower:
        follower.rpc("admin_addPeer", network.enodes[0])
        wait_for(lambda: peers(follower) == {node_id(0)})
        yield network, validator, follower


def test_an_unknown_node_is_refused_accepted_after_add_and_closed_after_remove(
    network: tuple[Network, NodeProcess, NodeProcess],
) -> None:
    net, validator, follower = network
    stranger_url = net.enodes[2]
    with net.node(2) as unlisted:
        unlisted.rpc("admin_addPeer", net.enodes[0])
        wait_for(lambda: "peer refused" in validator.output())
        assert peers(validator) == {node_id(1)}
        with pytest.raises(RpcFailure, match="Cannot add a non-permitted node as a peer"):
            validator.rpc("admin_addPeer", stranger_url)
        done = net.command(validator, "add", stranger_url).succeeded()
        assert f"{stranger_url} is permitted from block" in done.out
        dial_again(unlisted, net.enodes[0])
        wait_for(lambda: peers(validator) == {node_id(1), node_id(2)})
        done = net.command(validator, "remove", stranger_url, "--dry-run").succeeded()
        assert f"The connection with {stranger_url} would close." in done.out
        assert peers(validator) == {node_id(1), node_id(2)}, "nothing was changed"
        done = net.command(validator, "remove", stranger_url).succeeded()
        assert f"{stranger_url} is no longer permitted from block" in done.out
        wait_for(lambda: peers(validator) == {node_id(1)})
        assert "peer no longer permitted" in validator.output()
    assert peers(follower) == {node_id(0)}, "the others never lost each other"


def test_a_node_that_was_added_later_says_why_it_waits_and_catches_up_with_a_bootnode(tmp_path: Path) -> None:
    net = Network(tmp_path)
    ophion(
        *("permissions", "genesis", f"--from={net.genesis}", f"--to={net.genesis}"),
        f"--admin=0x{ADMIN.address.hex()}",
        f"--permitted-nodes={net.enodes[0]}",
    ).succeeded()
    static = tmp_path / "static.json"
    static.write_text(json.dumps(net.enodes[:1]))
    options = (*BY_CONTRACT, f"--static-nodes-file={static}")
    with net.node(0, *BY_CONTRACT) as validator:
        net.command(validator, "add", net.enodes[1]).succeeded()
        with net.node(1, *options) as late:
            wait_for(lambda: f"static node not dialled enode={net.enodes[0]}" in late.output())
            assert "at block 0 says no" in late.output()
            assert "set --bootnodes to permitted nodes" in late.output()
            assert peers(late) == set()
        with net.node(1, *options, f"--bootnodes={net.enodes[0]}") as late:
            wait_for(lambda: late.height >= validator.height > 0)
            assert peers(late) == {node_id(0)}
            assert late.output().count("static node not dialled") == 1, "that of the start before"


def test_a_sender_is_shut_out_until_an_administrator_adds_it(network: tuple[Network, NodeProcess, NodeProcess]) -> None:
    net, validator, follower = network
    raw = legacy_transaction(OTHER, 0, chain_id=CHAIN_ID)
    hash = validator.send(raw)
    wait_for(lambda: validator.rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"})
    assert validator.rpc("eth_getTransactionReceipt", hash) is None
    assert f"account 0x{OTHER.address.hex()} may not send this transaction" in validator.output()
    done = net.command(validator, "add", f"0x{OTHER.address.hex()}", "--dry-run").succeeded()
    assert "Would change" in done.out
    done = net.command(validator, "add", f"0x{OTHER.address.hex()}", f"0x{LISTED.address.hex()}").succeeded()
    assert f"0x{LISTED.address.hex()} is permitted already." in done.out
    validator.send(raw)
    number = validator.receipt(hash)["blockNumber"]
    wait_for(lambda: follower.height >= int(number, 16))


def test_the_command_shows_and_changes_who_is_in_charge(network: tuple[Network, NodeProcess, NodeProcess]) -> None:
    net, validator, _ = network
    shown = ophion("permissions", "list", f"--rpc=http://127.0.0.1:{validator.ports['json-rpc']}").succeeded().out
    assert f"  0x{LISTED.address.hex()}" in shown
    assert f"  {net.enodes[0]}" in shown
    assert net.command(validator, "admins").succeeded().out == f"Administrators:\n  0x{ADMIN.address.hex()}\n"
    net.command(validator, "admins", "add", f"0x{LISTED.address.hex()}").succeeded()
    assert f"0x{LISTED.address.hex()}" in net.command(validator, "admins").succeeded().out
    net.command(validator, "admins", "remove", f"0x{LISTED.address.hex()}").succeeded()
    net.command(validator, "admins", "remove", f"0x{ADMIN.address.hex()}").failed("Cannot remove oneself")
    (net.folder / "other.key").write_text(OTHER.secret().hex())
    ophion(
        *("permissions", "add", "0x" + "12" * 20, f"--key-file={net.folder}/other.key"),
        f"--rpc=http://127.0.0.1:{validator.ports['json-rpc']}",
    ).failed("is not an administrator: nothing was changed")


def test_a_block_with_a_forbidden_sender_counts_for_lists_and_not_for_contracts(tmp_path: Path) -> None:
    """The producer of the block has no permission rules. Nodes with a list accept the block; nodes with the contract
    refuse it.
    """
    network = Network(
        tmp_path, f"--admin=0x{ADMIN.address.hex()}", "--accounts", f"--permitted-accounts=0x{LISTED.address.hex()}"
    )
    rules = tmp_path / "rules.toml"
    rules.write_text(f'accounts-whitelist=["0x{LISTED.address.hex()}"]')
    by_list = ("--permissions-accounts-config-file-enabled", f"--permissions-accounts-config-file={rules}")
    with (
        network.node(0) as maker,
        network.node(1, *by_list) as with_list,
        network.node(2, *BY_CONTRACT[:2]) as with_contract,
    ):
        for follower in (with_list, with_contract):
            follower.rpc("admin_addPeer", network.enodes[0])
        with pytest.raises(RpcFailure) as refused:
            with_list.send(legacy_transaction(OTHER, 0, chain_id=CHAIN_ID))
        assert refused.value.code == -32007
        hash = maker.send(legacy_transaction(OTHER, 0, chain_id=CHAIN_ID))
        number = int(maker.receipt(hash)["blockNumber"], 16)
        wait_for(lambda: int(with_list.rpc("eth_blockNumber"), 16) > number)
        assert with_list.rpc("eth_getTransactionReceipt", hash)["status"] == "0x1"
        reason = f"account 0x{OTHER.address.hex()} may not send this transaction"
        wait_for(lambda: reason in with_contract.output())
        wait_for(lambda: with_contract.height >= number - 1)
        assert with_contract.height == number - 1


def test_rules_of_the_second_interface(tmp_path: Path) -> None:
    """The same commands work with interface version 2 of the node rules contract, which also accepts host names for
    nodes.
    """
    net = Network(tmp_path)
    done = ophion(
        *("permissions", "genesis", f"--from={net.genesis}", f"--to={net.genesis}", "--nodes"),
        *("--nodes-contract-version=2", f"--admin=0x{ADMIN.address.hex()}"),
        f"--permitted-nodes={','.join(net.enodes[:2])}",
    ).succeeded()
    assert "--permissions-nodes-contract-version=2" in done.out
    options = (*BY_CONTRACT[2:], "--permissions-nodes-contract-version=2")
    with net.node(0, *options) as validator, net.node(1, *options) as follower, net.node(2) as unlisted:
        follower.rpc("admin_addPeer", net.enodes[0])
        wait_for(lambda: peers(validator) == {node_id(1)})
        shown = net.listed(validator)
        assert [url for url in net.enodes if f"  {url}\n" in shown] == net.enodes[:2]
        net.command(validator, "add", net.enodes[2]).succeeded()
        assert f"{net.enodes[2]} is permitted already." in net.command(validator, "add", net.enodes[2]).succeeded().out
        unlisted.rpc("admin_addPeer", net.enodes[0])
        wait_for(lambda: peers(validator) == {node_id(1), node_id(2)})
        net.command(validator, "remove", net.enodes[2]).succeeded()
        wait_for(lambda: peers(validator) == {node_id(1)})
        assert net.enodes[2] not in net.listed(validator)
        records = [json.loads(line) for line in (tmp_path / "node-0" / AUDIT).read_text().splitlines()]
    assert [(one["added"], one["removed"], one["before"], one["after"]) for one in records] == [
        ([net.enodes[2]], [], 2, 3),
        ([], [net.enodes[2]], 3, 2),
    ]
    assert {one["by"] for one in records} == {f"0x{ADMIN.address.hex()}"}


def test_a_change_that_stops_consensus_is_made_by_force_only(tmp_path: Path) -> None:
    """Two validators permit only each other. Removing one leaves the other without a quorum, so the removal is
    refused unless it is forced.
    """
    net = Network(tmp_path, validators=2)
    ophion(
        *("permissions", "genesis", f"--from={net.genesis}", f"--to={net.genesis}", "--nodes"),
        *(f"--admin=0x{ADMIN.address.hex()}", f"--permitted-nodes={','.join(net.enodes[:2])}"),
    ).succeeded()
    with net.node(0, *BY_CONTRACT[2:]) as first, net.node(1, *BY_CONTRACT[2:]) as second:
        second.rpc("admin_addPeer", net.enodes[0])
        wait_for(lambda: peers(first) == {node_id(1)})
        wait_for(lambda: first.height >= 1)
        refused = net.command(first, "remove", net.enodes[1])
        refused.failed("Nothing was changed: this node would reach 1 of 2 validators, and 2 are needed. --force makes")
        assert "Consensus would stop" in net.command(first, "remove", net.enodes[1], "--dry-run").succeeded().out
        assert net.enodes[1] in net.listed(first)
        assert peers(first) == {node_id(1)}
        done = net.command(first, "remove", net.enodes[1], "--force").succeeded()
        assert "Consensus would stop" in done.out
        assert f"{net.enodes[1]} is no longer permitted from block" in done.out
        wait_for(lambda: peers(first) == set())


def test_records_name_the_user_of_a_token(tmp_path: Path) -> None:
    """When a logged-in user changes lists over HTTP, the audit record names this user."""
    hashed = ophion("password", "hash", text="secret").succeeded().out.strip()
    users, rules = tmp_path / "users.toml", tmp_path / "rules.toml"
    users.write_text(f'[Users.ali]\npassword = "{hashed}"\npermissions = ["perm:*"]\n')
    rules.write_text(f'accounts-whitelist=["0x{ADMIN.address.hex()}"]')
    options = (
        "--network=dev",
        "--rpc-http-api=ETH,PERM",
        "--rpc-http-authentication-enabled",
        f"--rpc-http-authentication-credentials-file={users}",
        "--permissions-accounts-config-file-enabled",
        f"--permissions-accounts-config-file={rules}",
    )
    account = f"0x{OTHER.address.hex()}"
    with NodeProcess(tmp_path / "data", *options) as node:
        port = node.ports["json-rpc"]
        _, answer = post(port, "/login", {"username": "ali", "password": "secret"})
        change = {"jsonrpc": "2.0", "id": 1, "method": "perm_addAccountsToWhitelist", "params": [[account]]}
        assert post(port, "/", change)[0] == 401
        assert post(port, "/", change, answer["token"])[1]["result"] == "Success"
        (record,) = (json.loads(line) for line in (tmp_path / "data" / AUDIT).read_text().splitlines())
        rules.write_text("accounts-whitelist=[]")
        wait_for(lambda: "difference=0 more and 2 fewer accounts" in node.output())
    assert (record["by"], record["added"], record["before"], record["after"]) == ("ali", [account], 1, 2)


def test_errors_are_reported_in_one_line(tmp_path: Path) -> None:
    admin = f"--admin=0x{ADMIN.address.hex()}"
    ophion("permissions", "genesis", admin, text="[]").failed("must be an object")
    ophion("permissions", "genesis", admin, text='{"alloc":{"0x8888":{}}}').failed("has an account 0x")
    ophion("permissions", "genesis").failed("--admin")
    ophion("permissions", "list", "--rpc=http://127.0.0.1:9").failed("The node at http://127.0.0.1:9 does not answer")
    ophion("permissions", "add", "0x12", "--rpc=http://127.0.0.1:9").failed("Invalid account 0x12")
    ophion("permissions", "add").failed("Name what to add")


def test_startup_checks_of_files(tmp_path: Path) -> None:
    options = ("--network=dev", f"--data-path={tmp_path / 'data'}", "--p2p-enabled=false")
    ophion(*options, "--permissions-accounts-config-file-enabled").failed(
        "Unable to read permissioning TOML config file"
    )
    rules = tmp_path / "rules.toml"
    rules.write_text("nodes-whitelist=[]")
    named = f"--permissions-nodes-config-file={rules}"
    bootnode = f"--bootnodes=enode://{KEYS[1].public_key.hex()}@127.0.0.1:30303"
    ophion(
        *("--network=dev", f"--data-path={tmp_path / 'data'}", "--p2p-interface=127.0.0.1", "--p2p-port=0", bootnode),
        *("--permissions-nodes-config-file-enabled", named),
    ).failed("Specified node(s) not in nodes-whitelist [enode://")
    ophion(
        *options,
        "--permissions-nodes-contract-enabled",
        f"--permissions-nodes-contract-address=0x{NODE_INGRESS.hex()}",
    ).failed("Error validating onchain node permissioning smart contract configuration")


def test_nodes_from_a_file_are_refused_let_in_and_put_out(tmp_path: Path) -> None:
    network = Network(tmp_path)
    rules = tmp_path / "rules.toml"
    rules.write_text(f'nodes-allowlist=["{network.enodes[1]}"]')
    guarded = ("--permissions-nodes-config-file-enabled", f"--permissions-nodes-config-file={rules}")
    with network.node(0, *guarded) as validator, network.node(1) as listed, network.node(2) as unlisted:
        for process in (listed, unlisted):
            process.rpc("admin_addPeer", network.enodes[0])
        wait_for(lambda: "peer refused" in validator.output())
        wait_for(lambda: peers(validator) == {node_id(1)})
        assert validator.rpc("perm_addNodesToAllowlist", [network.enodes[2]]) == "Success"
        dial_again(unlisted, network.enodes[0])
        wait_for(lambda: peers(validator) == {node_id(1), node_id(2)})
        assert validator.rpc("perm_removeNodesFromWhitelist", [network.enodes[1]]) == "Success"
        wait_for(lambda: peers(validator) == {node_id(2)})
    assert rules.read_text() == f'nodes-allowlist=["{network.enodes[2]}"]'
