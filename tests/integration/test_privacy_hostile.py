"""A hostile member among real nodes: its payloads and markers are refused or bounded, and private states stay equal."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.remote.http import Answer, HttpClient
from ophion.enclave_http.envelope import Envelope, open_answer, seal_request
from ophion.native.crypto import PrivateKey
from ophion.native.enclave import EnclaveKeyring
from ophion.native.privacy import sign_private_transaction
from ophion.peers.priv import messages
from ophion.primitives import rlp
from ophion.runtime.clock import SystemEntropy
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import NodeProcess
from ophion.testing.private_transactions import GAS, GET, NUMBER_CONTRACT, PrivateClient, set_number, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for

LIMIT_S = 60.0
ENTROPY = SystemEntropy()
PRECOMPILE = (126).to_bytes(20, "big")
ACCOUNT = DEV_KEYS[2]
MAX_RESIDENT = 512 << 20


class Evil:
    """An attacker with an enclave key and an account. The attacker sends arbitrary data to the enclave port."""

    def __init__(self, *members: PrivateClient) -> None:
        self.ring = EnclaveKeyring([b"\x66" * 32])
        [self.key] = self.ring.public_keys
        self.members = [self.key, *(one.enclave_key for one in members)]
        self.group = legacy_id(self.members)
        self.nonce = 0

    def post(self, node: NodeProcess, path: str, body: bytes) -> Answer:
        async def ask() -> Answer:
            client = HttpClient(f"http://127.0.0.1:{node.ports['enclave-peers']}")
            try:
                return await client.post(path, body, "application/json")
            finally:
                client.close()

        return asyncio.run(ask())

    def push(self, to: PrivateClient, *records: bytes) -> list[str]:
        """Push records. Returns the refusal of each record; the text is empty for an accepted record."""
        request = seal_request(self.ring, ENTROPY, self.key, to.enclave_key, b"/push", rlp.encode(list(records)))
        answer = self.post(to.node, "/push", request.encode())
        assert answer.status == 200, bytes(answer.body)
        opened = open_answer(self.ring, request, Envelope.decode(bytes(answer.body)))
        assert opened is not None
        return [ack.reason for ack in messages.read_acks(opened)]

    def seal(self, payload: bytes, recipients: list[bytes] | None = None) -> tuple[bytes, bytes]:
        """Seal a payload for these recipients. Returns key and record."""
        to = recipients or self.members
        return self.ring.seal(b64encode(payload), self.key, to, len(to), legacy_id(to), ENTROPY.token(80))

    def transaction(self, data: bytes, nonce: int, to: bytes | None = None) -> bytes:
        return sign_private_transaction(
            ACCOUNT.secret(),
            nonce=nonce,
            gas_price=0,
            gas_limit=GAS,
            to=to,
            data=data,
            private_from=self.key,
            private_for=self.members[1:],
            chain_id=CHAIN_ID,
        )

    def mark(self, node: NodeProcess, payload_key: bytes) -> str:
        """Send a marker for any payload key, known or unknown."""
        raw = legacy_transaction(
            ACCOUNT, self.nonce, to=PRECOMPILE, data=payload_key, gas=60_000, gas_price=0, chain_id=CHAIN_ID
        )
        self.nonce += 1
        return node.send(raw)


class Story:
    def __init__(self, network: TestNetwork) -> None:
        self.network = network
        self.a, self.b = (
            PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes, DEV_KEYS, strict=False)
        )
        for node in network.nodes:
            wait_for(lambda node=node: len(node.rpc("priv_status")["peers"]) >= 1, LIMIT_S, "enclaves")
        self.group = legacy_id([self.a.enclave_key, self.b.enclave_key])
        self.created = self.a.send(NUMBER_CONTRACT, private_for=(self.b.enclave_key,))
        self.contract: str = self.a.receipt(self.created)["contractAddress"]
        self.evil = Evil(self.a, self.b)

    def mined(self, marker: str) -> None:
        for node in self.network.nodes:
            wait_for(lambda node=node: node.rpc("eth_getTransactionReceipt", marker) is not None, LIMIT_S, "a marker")

    def statuses(self, marker: str) -> list[str | None]:
        self.mined(marker)
        found = [node.rpc("priv_getTransactionReceipt", marker) for node in self.network.nodes]
        return [one and one["status"] for one in found]

    def agree(self, value: int) -> None:
        """Check that members continue with equal states in both groups, and that their memory has not grown."""
        marker = self.a.send(set_number(value), to=self.contract, private_for=(self.b.enclave_key,))
        assert self.a.receipt(marker)["status"] == "0x1"
        self.mined(marker)
        number = self.a.node.rpc("priv_getTransactionReceipt", marker)["blockNumber"]
        call = {"to": self.contract, "data": GET}
        read = [node.rpc("priv_call", text(self.group), call, number) for node in self.network.nodes]
        assert [int(one, 16) for one in read] == [value, value]
        for group in (self.group, self.evil.group):
            roots = {node.rpc("priv_debugGetStateRoot", text(group), number) for node in self.network.nodes}
            assert len(roots) == 1
        for node in self.network.nodes:
            assert resident(node) < MAX_RESIDENT


def resident(node: NodeProcess) -> int:
    pages = int(Path(f"/proc/{node.pid}/statm").read_text().split()[1])
    return pages * 4096


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    path = tmp_path_factory.mktemp("hostile")
    options = ("--privacy-enabled", "--privacy-enclave-host=127.0.0.1", "--privacy-enclave-port=0")
    with TestNetwork(path, "qbft", validators=1, followers=1, options=options) as network:
        yield Story(network)


def test_wrong_keys(story: Story) -> None:
    evil, unknown_ring = story.evil, EnclaveKeyring([b"\x55" * 32])
    [strange] = unknown_ring.public_keys
    members = [strange, story.a.enclave_key]
    _, record = unknown_ring.seal(b"text", strange, members, 2, legacy_id(members), ENTROPY.token(80))
    assert evil.push(story.a, record) == ["its sender's key is not proven"]
    _, record = evil.seal(b"text", [evil.key, strange])
    assert evil.push(story.a, record) == ["it does not open"]
    forged = seal_request(evil.ring, ENTROPY, evil.key, story.a.enclave_key, b"/push", b"\xc0")._replace(
        sender=story.b.enclave_key
    )
    assert evil.post(story.a.node, "/push", forged.encode()).status == 403
    story.agree(1)


def test_low_order_points(story: Story) -> None:
    evil = story.evil
    for low in (bytes(32), b"\1" + bytes(31), bytes.fromhex("ed" + "ff" * 30 + "7f")):
        envelope = seal_request(evil.ring, ENTROPY, evil.key, story.a.enclave_key, b"/push", b"\xc0")
        assert evil.post(story.a.node, "/push", envelope._replace(sender=low).encode()).status == 403
        _, record = evil.seal(b"text")
        assert evil.push(story.a, record.replace(story.b.enclave_key, low)) != [""]
    story.agree(2)


def test_replayed_payloads_under_another_group(story: Story) -> None:
    """A member sends a transaction of A under its own name, then for a group that the transaction does not name."""
    evil = story.evil
    stolen = sign_private_transaction(
        PrivateKey(b"\x31" * 32).secret(),
        nonce=0,
        gas_price=0,
        gas_limit=GAS,
        to=None,
        data=NUMBER_CONTRACT,
        private_from=story.a.enclave_key,
        private_for=[story.b.enclave_key],
        chain_id=CHAIN_ID,
    )
    for recipients in (evil.members, [evil.key, story.b.enclave_key]):
        key, record = evil.seal(stolen, recipients)
        assert evil.push(story.b, record) == ["the transaction in it names another sender or group"]
        assert story.statuses(evil.mark(story.b.node, key)) == [None, None]
    # an attacker sends a second marker for an executed payload; all members refuse it, because its nonce is used
    payload_key = story.a.node.rpc("eth_getTransactionByHash", story.created)["input"]
    again = evil.mark(story.b.node, bytes.fromhex(payload_key[2:]))
    assert story.statuses(again) == ["0x2", "0x2"]
    story.agree(3)


def test_a_payload_that_only_one_of_two_members_gets(story: Story) -> None:
    evil = story.evil
    key, record = evil.seal(evil.transaction(NUMBER_CONTRACT, 0))
    assert evil.push(story.a, record) == [""]
    marker = evil.mark(story.a.node, key)
    assert story.statuses(marker) == ["0x1", None]
    assert int(story.b.node.rpc("priv_catchUp"), 16) == 1, "from A, who is a member too"
    wait_for(lambda: story.statuses(marker) == ["0x1", "0x1"], LIMIT_S, "the same at B")
    story.agree(4)


def test_payloads_of_16_mib(story: Story) -> None:
    evil = story.evil
    _, record = evil.seal(bytes(16 * 1024 * 1024))
    request = seal_request(evil.ring, ENTROPY, evil.key, story.a.enclave_key, b"/push", rlp.encode([record]))
    assert evil.post(story.a.node, "/push", request.encode()).status == 413
    _, record = evil.seal(bytes(1_150_000))
    assert evil.push(story.a, record) == ["it is too large"]
    story.agree(5)


def test_markers_that_point_nowhere(story: Story) -> None:
    evil = story.evil
    markers = [evil.mark(story.b.node, bytes([number]) * 32) for number in range(1, 60)]
    for marker in markers:
        assert story.statuses(marker) == [None, None]
    assert story.a.node.rpc("priv_explain", markers[0])["state"] == "no payload"
    story.agree(6)
