"""Private transactions with Tessera: three nodes, each with a real Tessera in orion mode (privacy.md 5, 15.5).

Needs TESSERA=command. The test starts the command with `-configfile FILE`. The third node is not a member.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import signal
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import COMMAND, RpcFailure, environment
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import (
    ENCLAVE_KEYS,
    ENCLAVE_SECRETS,
    GET,
    NUMBER_CONTRACT,
    PrivateClient,
    set_number,
    text,
)
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for

TESSERA = shlex.split(os.environ.get("TESSERA", ""))
LIMIT_S = 90.0
PRECOMPILE = (0x7E).to_bytes(20, "big")

pytestmark = pytest.mark.skipif(
    not (TESSERA and shutil.which(TESSERA[0])), reason="TESSERA is no command that starts a Tessera"
)


class Tessera:
    """A Tessera process, with one of the public test keys and a database in its folder."""

    def __init__(
        self, path: Path, index: int, ports: Sequence[tuple[int, int]], *, validates_keys: bool = False
    ) -> None:
        """Prepare a process. `ports` are the ports of all processes, for clients and for other enclaves.

        With `validates_keys`, Tessera accepts only keys that other enclaves prove.
        """
        self.path = path
        self.port, self.peer_port = ports[index]
        self.key_file = path / "key.pub"
        self._process: subprocess.Popen[bytes] | None = None
        path.mkdir()
        self.key_file.write_text(text(ENCLAVE_KEYS[index]))
        servers = {"Q2T": self.port, "P2P": self.peer_port}
        keys = {"privateKey": text(ENCLAVE_SECRETS[index]), "publicKey": text(ENCLAVE_KEYS[index])}
        # without WRITE_DELAY=0, the database writes acknowledged data to disk only half a second later
        database = f"jdbc:h2:{path / 'rows'};WRITE_DELAY=0"
        config = {
            "mode": "orion",
            "useWhiteList": False,
            "jdbc": {"username": "sa", "password": "", "url": database, "autoCreateTables": True},
            "serverConfigs": [
                {"app": app, "serverAddress": f"http://127.0.0.1:{port}", "communicationType": "REST"}
                for app, port in servers.items()
            ],
            "peer": [{"url": f"http://127.0.0.1:{port}"} for _, port in ports],
            "keys": {"passwords": [], "keyData": [keys]},
            "alwaysSendTo": [],
            "features": {"enableRemoteKeyValidation": validates_keys},
        }
        (path / "config.json").write_text(json.dumps(config))

    def start(self) -> None:
        with (self.path / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*TESSERA, "-configfile", str(self.path / "config.json")],
                cwd=self.path,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self) -> None:
        wait_for(self.is_up, LIMIT_S, f"the Tessera in {self.path}")

    def is_up(self) -> bool:
        try:
            return self.ask("GET", "/upcheck")[0] == 200
        except OSError:
            return False

    def ask(
        self, method: str, path: str, body: bytes = b"", *, among: bool = False, **headers: str
    ) -> tuple[int, bytes]:
        """Send a request as a client. With `among`, send it as another Tessera."""
        connection = http.client.HTTPConnection("127.0.0.1", self.peer_port if among else self.port, timeout=20)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def kill(self) -> None:
        """Kill all processes of this Tessera, because the command may be a script that starts another process."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(15)


class Story:
    """Members A and B, and C, which is not a member. Each node has a Tessera."""

    def __init__(self, network: TestNetwork, enclaves: list[Tessera]) -> None:
        self.network = network
        self.enclaves = enclaves
        self.a, self.b, self.c = self.clients = [
            PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes, DEV_KEYS, strict=False)
        ]
        self.group = legacy_id([self.a.enclave_key, self.b.enclave_key])
        # retry, because the enclave does not know a recipient before both enclaves have exchanged keys
        self.contract = self.created(private_for=(self.b.enclave_key,))

    def created(self, **members: Any) -> str:
        markers: list[str] = []

        def is_sent() -> bool:
            try:
                markers.append(self.a.send(NUMBER_CONTRACT, **members))
            except RpcFailure:
                return False
            return True

        wait_for(is_sent, LIMIT_S, "a contract")
        contract: str = self.a.receipt(markers[0])["contractAddress"]
        return contract

    def set(self, value: int) -> str:
        marker = self.a.send(set_number(value), to=self.contract, private_for=(self.b.enclave_key,))
        assert self.a.receipt(marker)["status"] == "0x1"
        return marker

    def get(self, client: PrivateClient, group: bytes | None = None, contract: str | None = None) -> str:
        call = {"to": contract or self.contract, "data": GET}
        found: str = client.node.rpc("priv_call", text(group or self.group), call, "latest")
        return found

    def agree(self, marker: str, value: int, group: bytes | None = None, contract: str | None = None) -> None:
        """Check that members have executed this transaction and have the same state."""
        for one in (self.a, self.b):
            wait_for(lambda one=one: self.receipt(one, marker) is not None, LIMIT_S, "the receipt")  # type: ignore[misc]
            assert int(self.get(one, group, contract), 16) == value
        number = self.receipt(self.a, marker)["blockNumber"]
        shown = text(group or self.group)
        assert len({one.node.rpc("priv_debugGetStateRoot", shown, number) for one in (self.a, self.b)}) == 1

    def receipt(self, client: PrivateClient, marker: str) -> Any:
        return client.node.rpc("priv_getTransactionReceipt", marker)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    path = tmp_path_factory.mktemp("tessera")
    numbers = free_ports(6)
    ports = list(zip(numbers[::2], numbers[1::2], strict=True))
    enclaves = [Tessera(path / f"tessera{index}", index, ports) for index in range(3)]
    own = {
        index: (f"--privacy-url=http://127.0.0.1:{one.port}", f"--privacy-public-key-file={one.key_file}")
        for index, one in enumerate(enclaves)
    }
    try:
        for one in enclaves:
            one.start()
        for one in enclaves:
            one.wait()
        with TestNetwork(path, "qbft", validators=1, followers=2, options=("--privacy-enabled",), own=own) as network:
            yield Story(network, enclaves)
    finally:
        for one in enclaves:
            one.kill()


def test_members_agree_and_others_see_nothing(story: Story) -> None:
    for value in (47, 123):
        marker = story.set(value)
        story.agree(marker, value)
        wait_for(lambda marker=marker: story.c.node.rpc("eth_getTransactionReceipt", marker), LIMIT_S, "the block at C")  # type: ignore[misc]
        assert story.get(story.c) == "0x"
        assert story.receipt(story.c, marker) is None
    # the other member sends too, although its enclave has not seen the group before
    marker = story.b.send(set_number(5), to=story.contract, private_for=(story.a.enclave_key,))
    assert story.b.receipt(marker)["status"] == "0x1"
    story.agree(marker, 5)
    sent = story.a.node.rpc("priv_getPrivateTransaction", marker)
    assert sent == story.b.node.rpc("priv_getPrivateTransaction", marker)
    assert sent["privateFrom"] == text(story.b.enclave_key)


def test_a_payload_lies_there_as_other_clients_expect_it(story: Story) -> None:
    """Tessera stores the payload as base64 of base64, under the key in the marker and for the group of
    privacy.md 4.1.
    """
    marker = story.set(9)
    key = bytes.fromhex(story.a.node.rpc("eth_getTransactionByHash", marker)["input"][2:])
    asked = json.dumps({"key": text(key)}).encode()
    for enclave in story.enclaves[:2]:
        status, answer = enclave.ask("POST", "/receive", asked, Content_Type="application/json")
        assert status == 200
        found = json.loads(answer)
        assert b64decode(b64decode(found["payload"]))[:1] >= b"\xf8"
        assert found["privacyGroupId"] == text(story.group)
        assert found["senderKey"] == text(story.a.enclave_key)
    assert story.enclaves[2].ask("POST", "/receive", asked, Content_Type="application/json")[0] == 404


def test_groups_are_made_found_used_and_deleted(story: Story) -> None:
    members = [text(one.enclave_key) for one in (story.a, story.b)]
    id: str = story.a.node.rpc("priv_createPrivacyGroup", {"addresses": members, "name": "n", "description": "d"})
    group = b64decode(id)
    for one in (story.a, story.b):
        found = {each["privacyGroupId"]: each for each in one.node.rpc("priv_findPrivacyGroup", members)}
        assert found[id]["name"] == "n"
        assert found[id]["type"] == "PANTHEON"
        assert set(found[id]["members"]) == set(members)
    assert story.c.node.rpc("priv_findPrivacyGroup", members) == []
    contract = story.created(group=group)
    story.agree(story.a.send(set_number(7), to=contract, group=group), 7, group, contract)
    marker = story.b.send(set_number(8), to=contract, group=group)
    story.agree(marker, 8, group, contract)
    # a member executes a transaction that was sent before the group was deleted
    story.b.node.stop()
    marker = story.a.send(set_number(11), to=contract, group=group)
    assert story.a.receipt(marker)["status"] == "0x1"
    assert story.a.node.rpc("priv_deletePrivacyGroup", id) == id
    story.b.node.start()
    story.agree(marker, 11, group, contract)
    for one in (story.a, story.b):
        assert id not in {each["privacyGroupId"] for each in one.node.rpc("priv_findPrivacyGroup", members)}
        with pytest.raises(RpcFailure, match=r"-50100 Offchain Privacy group does not exist\."):
            one.send(set_number(1), to=contract, group=group)


def test_its_refusals_reach_the_client(story: Story) -> None:
    unknown_key = text(b"\x11" * 32)
    with pytest.raises(RpcFailure, match="-50200 Recipient not found for key:") as refused:
        story.a.send(set_number(1), to=story.contract, private_for=(b"\x11" * 32,))
    assert unknown_key not in str(refused.value)
    with pytest.raises(RpcFailure, match="-50200 The list of members in a privacy group should include self"):
        story.a.node.rpc("priv_createPrivacyGroup", {"addresses": [text(story.b.enclave_key)]})
    with pytest.raises(RpcFailure, match="-50200 PrivacyGroupNotFound"):
        story.a.node.rpc("priv_deletePrivacyGroup", unknown_key)


def test_foreign_payloads_in_the_enclave_stop_no_member(story: Story) -> None:
    """No member stops because of a payload that is not a transaction, a payload that cannot be opened, or the markers
    of these payloads.
    """
    form = {
        "payload": b64encode(b"hello").decode(),
        "from": text(story.a.enclave_key),
        "to": [text(story.b.enclave_key)],
    }
    status, answer = story.enclaves[0].ask("POST", "/send", json.dumps(form).encode(), Content_Type="application/json")
    assert status == 200, answer
    keys = [json.loads(answer)["key"]]
    # Tessera stores a pushed payload without opening it, so an unknown enclave can push anything
    fields = [story.a.enclave_key, os.urandom(100), os.urandom(24), None, os.urandom(48), os.urandom(24)]
    body = b"".join((1 if one is None else len(one)).to_bytes(8, "big") + (one or b"") for one in fields)
    status, answer = story.enclaves[1].ask("POST", "/push", body, among=True, Content_Type="application/octet-stream")
    assert status == 201, answer
    keys.append(answer.decode())
    asked = json.dumps({"key": keys[1]}).encode()
    assert story.enclaves[1].ask("POST", "/receive", asked, Content_Type="application/json")[0] == 500
    for key in keys:
        sender = DEV_KEYS[2]
        nonce = int(story.a.node.rpc("eth_getTransactionCount", "0x" + sender.address.hex(), "pending"), 16)
        raw = legacy_transaction(sender, nonce, to=PRECOMPILE, data=b64decode(key), gas=50_000, chain_id=CHAIN_ID)
        story.a.receipt(story.a.node.rpc("eth_sendRawTransaction", "0x" + raw.hex()))
    story.agree(story.set(31), 31)


def test_a_member_that_was_away_catches_up(story: Story) -> None:
    network = story.network
    network.kill(1)
    marker = story.set(99)
    story.enclaves[1].kill()
    with pytest.raises(RpcFailure, match="-50[12]00"):
        story.set(100)
    story.b.node.start()
    wait_for(lambda: story.b.node.rpc("priv_status")["waitsForEnclave"], LIMIT_S, "a follower that waits")
    network.grow(2, LIMIT_S)
    assert story.b.node.rpc("priv_status")["isUp"] is False
    story.enclaves[1].start()
    story.enclaves[1].wait()
    story.agree(marker, 99)
    assert story.b.node.rpc("priv_status")["waitsForEnclave"] is False
    # delete and rebuild the private states
    number = network.height(1)
    before = story.b.node.rpc("priv_debugGetStateRoot", text(story.group), hex(number))
    story.b.node.stop()
    rebuilt = subprocess.run(
        [*COMMAND, "privacy", "rebuild", f"--data-path={story.b.node.data_path}"],
        capture_output=True,
        timeout=60,
        check=False,
        env=environment(),
    )
    assert rebuilt.returncode == 0, rebuilt.stderr
    story.b.node.start()
    wait_for(lambda: story.receipt(story.b, marker) is not None, LIMIT_S, "the receipt")
    assert story.b.node.rpc("priv_debugGetStateRoot", text(story.group), hex(number)) == before


def test_an_enclave_killed_under_load_holds_up_nothing_but_private_states(story: Story) -> None:
    """After a kill of the sender's enclave, clients get errors, the chain continues, and members execute acknowledged
    transactions.
    """
    sent: list[str] = []
    nonce = int(story.a.node.rpc("priv_getTransactionCount", "0x" + story.a.key.address.hex(), text(story.group)), 16)
    for value in range(12):
        if value == 6:
            story.enclaves[0].kill()
            with pytest.raises(RpcFailure, match="-50100 Error communicating with enclave"):
                story.a.send(set_number(1), to=story.contract, private_for=(story.b.enclave_key,), nonce=nonce)
            story.network.grow(2, LIMIT_S)
            story.enclaves[0].start()
            story.enclaves[0].wait()
        marker = _sent_at_last(story, value, nonce)
        sent.append(marker)
        nonce += 1
    story.agree(sent[-1], 11)
    assert all(story.receipt(one, marker)["status"] == "0x1" for one in (story.a, story.b) for marker in sent)


def _sent_at_last(story: Story, value: int, nonce: int) -> str:
    """Send a transaction with retries, because a restarted Tessera needs time to find the other enclaves."""
    found: list[str] = []

    def is_sent() -> bool:
        try:
            found.append(
                story.a.send(set_number(value), to=story.contract, private_for=(story.b.enclave_key,), nonce=nonce)
            )
        except RpcFailure:
            return False
        return True

    wait_for(is_sent, LIMIT_S, "an enclave that knows the other again")
    return found[0]
