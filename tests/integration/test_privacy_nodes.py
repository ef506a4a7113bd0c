"""Private transactions between real nodes: the acceptance scenario with embedded enclaves (privacy.md 13, 15.5)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.native.store import open_store
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import COMMAND, RpcFailure, environment
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import GET, NUMBER_CONTRACT, PrivateClient, set_number, text
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for

LIMIT_S = 60.0


class Story:
    """Members A and B with a contract, and C, which is not a member."""

    def __init__(self, network: TestNetwork) -> None:
        self.network = network
        self.a, self.b, self.c = (
            PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes, DEV_KEYS, strict=False)
        )
        self.group = legacy_id([self.a.enclave_key, self.b.enclave_key])
        for node in (0, 1):
            wait_for(lambda node=node: len(network.nodes[node].rpc("priv_status")["peers"]) >= 2, LIMIT_S, "enclaves")
        marker = self.a.send(NUMBER_CONTRACT, private_for=(self.b.enclave_key,))
        self.contract: str = self.a.receipt(marker)["contractAddress"]
        self.creation = marker

    def set(self, value: int) -> str:
        marker = self.a.send(set_number(value), to=self.contract, private_for=(self.b.enclave_key,))
        assert self.a.receipt(marker)["status"] == "0x1"
        return marker

    def get(self, index: int) -> str:
        call = {"to": self.contract, "data": GET}
        found: str = self.network.nodes[index].rpc("priv_call", text(self.group), call, "latest")
        return found

    def root(self, index: int, number: int) -> str:
        node = self.network.nodes[index]
        wait_for(lambda: self.network.height(index) >= number, LIMIT_S, f"block {number}")
        found: str = node.rpc("priv_debugGetStateRoot", text(self.group), hex(number))
        return found

    def agree(self) -> None:
        """Check that both members have the same state at A's latest block."""
        number = self.network.height(0)
        wait_for(lambda: self.root(0, number) == self.root(1, number), LIMIT_S, f"one root in block {number}")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    path = tmp_path_factory.mktemp("privacy")
    options = ("--privacy-enabled", "--privacy-delivery=queue")
    with TestNetwork(path, "qbft", validators=1, followers=2, options=options) as network:
        yield Story(network)


def test_members_agree_and_others_see_nothing(story: Story) -> None:
    marker = story.set(47)
    story.agree()
    assert int(story.get(0), 16) == int(story.get(1), 16) == 47
    wait_for(lambda: story.c.node.rpc("eth_getTransactionReceipt", marker) is not None, LIMIT_S, "the block at C")
    assert story.get(2) == "0x"
    for node in (story.b.node, story.c.node):
        wait_for(lambda node=node: node.rpc("eth_getTransactionReceipt", marker) is not None, LIMIT_S, "the block")
    ours, theirs = (one.node.rpc("priv_getTransactionReceipt", story.creation) for one in (story.a, story.b))
    assert ours == theirs
    assert ours["contractAddress"] == story.contract
    for name in ("eea_getTransactionReceipt", "priv_getPrivateTransaction"):
        assert story.c.node.rpc(name, story.creation) is None
    assert story.c.node.rpc("priv_explain", story.creation)["state"] == "no payload"


def test_a_member_that_was_away_catches_up(story: Story) -> None:
    story.set(47)
    story.agree()
    story.network.kill(1)
    markers = [story.set(value) for value in (99, 123)]
    story.b.node.start()
    wait_for(lambda: story.b.node.rpc("priv_getTransactionReceipt", markers[-1]) is not None, LIMIT_S, "the receipt")
    story.agree()
    assert int(story.get(0), 16) == int(story.get(1), 16) == 123
    assert story.get(2) == "0x"
    wait_for(lambda: not story.a.node.rpc("priv_status")["outbox"], LIMIT_S, "an empty outbox")


def test_deleted_payloads_are_restored_and_states_are_rebuilt(story: Story) -> None:
    story.set(5)
    story.set(123)
    story.agree()
    number = story.network.height(0)
    before = story.root(1, number)
    story.b.node.stop()
    store = open_store(story.b.node.data_path / "database")
    store.clear_rows(["payloads"])
    store.close()
    done = subprocess.run(
        [*COMMAND, "privacy", "rebuild", f"--data-path={story.b.node.data_path}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    story.b.node.start()
    wait_for(lambda: story.root(1, number) == before, LIMIT_S, "the same root")
    assert int(story.get(1), 16) == 123
    story.agree()


def test_the_terminal_does_it_too(story: Story, tmp_path: Path) -> None:
    key = tmp_path / "account.key"
    key.write_text((0xBEEF).to_bytes(32, "big").hex())
    url = f"--rpc=http://127.0.0.1:{story.a.node.ports['json-rpc']}"

    def run(*words: str) -> str:
        done = subprocess.run(
            [*COMMAND, "privacy", *words, url],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=environment(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    sent = run("send", f"--key-file={key}", f"--for={text(story.b.enclave_key)}", f"--data={NUMBER_CONTRACT.hex()}")
    shown = dict(line.split(None, 1) for line in sent.splitlines())
    assert shown["group"] == text(story.group)
    target = (f"--group={shown['group']}", f"--to={shown['contract']}")
    asked = run("call", *target, f"--data={GET}")
    assert int(asked, 16) == 0
    status = run("status")
    assert text(story.a.enclave_key) in status
    assert text(story.group) in status


def test_the_same_with_an_enclave_outside(tmp_path: Path) -> None:
    """Private transactions also work if A uses the remote enclave of X and B uses an embedded enclave. X is killed and
    restarted.
    """
    (port,) = free_ports(1)
    served = (f"--privacy-enclave-http-port={port}",)
    outside = (
        f"--privacy-url=http://127.0.0.1:{port}",
        f"--privacy-public-key-file={tmp_path / 'node1' / 'privacy' / 'nodeKey.pub'}",
    )
    options = ("--privacy-enabled", "--privacy-delivery=queue")
    with TestNetwork(
        tmp_path, "qbft", validators=1, followers=2, options=options, own={1: served, 2: outside}
    ) as network:
        b, x, a = (PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes, DEV_KEYS, strict=False))
        assert a.enclave_key == x.enclave_key
        wait_for(lambda: len(x.node.rpc("priv_status")["peers"]) >= 1, LIMIT_S, "enclaves")
        group = legacy_id([a.enclave_key, b.enclave_key])
        contract = a.receipt(a.send(NUMBER_CONTRACT, private_for=(b.enclave_key,)))["contractAddress"]
        call = {"to": contract, "data": GET}

        def agree(value: int) -> None:
            number = network.height(0)
            for index in (0, 2):
                wait_for(lambda index=index: network.height(index) >= number, LIMIT_S, f"block {number}")
            read = [one.node.rpc("priv_call", text(group), call, hex(number)) for one in (a, b)]
            assert [int(one, 16) for one in read] == [value, value]
            roots = {one.node.rpc("priv_debugGetStateRoot", text(group), hex(number)) for one in (a, b)}
            assert len(roots) == 1

        for value in (47, 123):
            marker = a.send(set_number(value), to=contract, private_for=(b.enclave_key,))
            assert a.receipt(marker)["status"] == "0x1"
            wait_for(lambda marker=marker: b.node.rpc("eth_getTransactionReceipt", marker), LIMIT_S, "the block at B")
            agree(value)
        nonce = int(b.node.rpc("priv_getTransactionCount", "0x" + b.key.address.hex(), text(group)), 16)
        network.kill(1)
        with pytest.raises(RpcFailure, match="-50100 Error communicating with enclave"):
            a.send(set_number(1), to=contract, private_for=(b.enclave_key,), nonce=3)
        marker = b.send(set_number(7), to=contract, private_for=(a.enclave_key,), nonce=nonce)
        assert b.receipt(marker)["status"] == "0x1"
        network.grow(2, LIMIT_S, (0, 2))
        x.node.start()

        # payloads that were unavailable at their block are executed when they arrive, without a client request
        wait_for(lambda: a.node.rpc("priv_getTransactionReceipt", marker) is not None, LIMIT_S, "the receipt")
        agree(7)


def test_members_that_are_no_peers_reach_each_other_over_http(tmp_path: Path) -> None:
    """A and B are not peers, and C, which has no privacy, relays blocks between them. Payloads go directly between the
    enclaves.
    """
    ports = free_ports(2)
    own: dict[int, Sequence[str]] = {
        index: (
            "--privacy-enabled",
            "--privacy-delivery=queue",
            "--privacy-enclave-host=127.0.0.1",
            f"--privacy-enclave-port={ports[index]}",
            f"--privacy-enclave-peers=http://127.0.0.1:{ports[1 - index]}",
        )
        for index in (0, 1)
    }
    network = TestNetwork(tmp_path, "qbft", validators=1, followers=2, relayed=True, own=own)
    for link in ((0, 1), (1, 0)):
        network.relays[link].is_cut = True
    with network:
        a, b = (PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes[:2], DEV_KEYS, strict=False))
        for node in (a.node, b.node):
            wait_for(lambda node=node: len(node.rpc("priv_status")["peers"]) == 1, LIMIT_S, "enclaves")
        group = legacy_id([a.enclave_key, b.enclave_key])
        contract = a.receipt(a.send(NUMBER_CONTRACT, private_for=(b.enclave_key,)))["contractAddress"]

        def send(value: int) -> str:
            marker = a.send(set_number(value), to=contract, private_for=(b.enclave_key,))
            assert a.receipt(marker)["status"] == "0x1"
            return marker

        def agree(marker: str, value: int) -> None:
            wait_for(lambda: b.node.rpc("priv_getTransactionReceipt", marker) is not None, LIMIT_S, "the receipt at B")
            number = b.node.rpc("priv_getTransactionReceipt", marker)["blockNumber"]
            call = {"to": contract, "data": GET}
            assert [int(one.node.rpc("priv_call", text(group), call, number), 16) for one in (a, b)] == [value, value]
            assert len({one.node.rpc("priv_debugGetStateRoot", text(group), number) for one in (a, b)}) == 1

        agree(send(47), 47)
        assert [one.node.rpc("net_peerCount") for one in (a, b)] == ["0x1", "0x1"], "C alone"
        network.kill(1)
        marker = send(123)
        b.node.start()
        agree(marker, 123)
        wait_for(lambda: not a.node.rpc("priv_status")["outbox"], LIMIT_S, "an empty outbox")


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "privacy"


def urls(story: Story) -> list[str]:
    return [f"http://127.0.0.1:{node.ports['json-rpc']}" for node in story.network.nodes]


def run_example(*command: str) -> str:
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(importlib.util.find_spec("web3") is None, reason="web3.py is not installed (pip install web3)")
def test_the_python_example(story: Story) -> None:
    shown = run_example(sys.executable, "client.py", *urls(story))
    assert "A set 47: A reads 47, B reads 47, C reads 0x" in shown
    assert "A set 123: A reads 123, B reads 123, C reads 0x" in shown
    assert "A and B have the same state" in shown


@pytest.mark.skipif(
    not (EXAMPLE / "node_modules" / ".package-lock.json").exists(), reason="npm packages are not there (npm ci)"
)
def test_the_web3_extension_works_unmodified(story: Story) -> None:
    shown = run_example("node", "client.js", *urls(story))
    assert "A set 47: A reads 47, B reads 47, C reads 0x" in shown
    assert "A set 123: A reads 123, B reads 123, C reads 0x" in shown
