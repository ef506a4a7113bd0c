"""Enclaves of real nodes with processes, sockets and restarts. A non-member sees no private data."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from base64 import b64decode, b64encode
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ophion.testing.network import TestNetwork
from ophion.testing.node_process import NodeProcess
from ophion.testing.wait_for import wait_for

PLANTED = b"planted-47-planted-contract-code-and-arguments"


class Tool:
    """A client of one node's enclave."""

    def __init__(self, node: NodeProcess) -> None:
        self.node = node
        self.key = self.get("/keys")["keys"][0]["key"]

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None)[1]

    def post(self, path: str, **members: Any) -> tuple[int, Any]:
        return self._ask("POST", path, json.dumps({name.rstrip("_"): value for name, value in members.items()}))

    def send(self, payload: bytes, *to: Tool) -> str:
        text = b64encode(b64encode(payload)).decode()
        status, answer = self.post("/send", payload=text, from_=self.key, to=[one.key for one in to])
        assert status == 200, answer
        return str(answer["key"])

    def receive(self, key: str) -> bytes | None:
        status, answer = self.post("/receive", key=key)
        return b64decode(b64decode(answer["payload"])) if status == 200 else None

    def knows(self, *others: Tool) -> bool:
        known = {one["key"] for one in self.get("/partyinfo/keys")["keys"]}
        return known.issuperset(other.key for other in others)

    def _ask(self, method: str, path: str, body: str | None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.node.ports["enclave-http"], timeout=60)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture
def network(tmp_path: Path) -> Any:
    options = ("--privacy-enabled", "--privacy-enclave-http-port=0", "--privacy-delivery=queue", "--logging=TRACE")
    with TestNetwork(tmp_path, "qbft", validators=1, followers=2, relayed=True, options=options) as made:
        yield made


def bytes_on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file())


def test_only_members_can_read_payloads(network: TestNetwork) -> None:
    a, b, c = (Tool(node) for node in network.nodes)
    network.wait(lambda: a.knows(b, c) and b.knows(a, c), 60, "the enclaves finding each other")
    key = a.send(PLANTED, b)
    assert (a.receive(key), b.receive(key), c.receive(key)) == (PLANTED, PLANTED, None)

    # node b is offline and gets the payload after its restart
    network.nodes[1].stop()
    late = a.send(PLANTED + b" late", b)
    network.nodes[1].start()
    b = Tool(network.nodes[1])
    network.wait(lambda: b.receive(late) is not None, 60, "delivery from the outbox")

    # node b loses its disk, and the other members send its payloads again
    network.kill(1)
    secret = (network.data_path(1) / "privacy").rename(network.path / "kept")
    network.wipe(1)
    secret.rename(network.data_path(1) / "privacy")
    network.nodes[1].start()
    b = Tool(network.nodes[1])
    network.wait(lambda: b.receive(key) == PLANTED and b.receive(late) is not None, 60, "payloads after a restore")
    assert c.receive(key) is None

    for node in network.nodes:
        node.stop()
    forms = [PLANTED, b64encode(PLANTED), b64encode(b64encode(PLANTED))]
    for text in (form[:24] for form in forms):
        for index in range(3):
            assert text not in bytes_on_disk(network.data_path(index)), f"node {index}"
            assert text not in network.nodes[index].log.read_bytes(), f"log of node {index}"
    # node c stores no payload, neither sealed nor decrypted
    digest = b64decode(key)
    assert digest in bytes_on_disk(network.data_path(0))
    assert digest not in bytes_on_disk(network.data_path(2))


def test_a_node_looks_for_its_enclave_outside_and_goes_on_without(tmp_path: Path) -> None:
    usual = ("--network=dev", "--privacy-enabled", "--min-gas-price=0")
    with NodeProcess(tmp_path / "inside", *usual, "--privacy-enclave-http-port=0") as one:
        key_file = one.data_path / "privacy" / "nodeKey.pub"
        url = f"http://127.0.0.1:{one.ports['enclave-http']}"
        options = (*usual, f"--privacy-url={url}", f"--privacy-public-key-file={key_file}")
        with NodeProcess(tmp_path / "client", *options) as client:
            wait_for(lambda: "enclave online" in client.output())
            assert "does not hold the key" not in client.output()
            assert client.rpc("eth_blockNumber") == "0x0"
    with NodeProcess(tmp_path / "alone", *options) as client:
        wait_for(lambda: "enclave offline" in client.output())
        assert client.rpc("eth_blockNumber") == "0x0"
        assert client.output().count("enclave offline") == 1


def test_nothing_that_was_acknowledged_is_lost_by_kills(network: TestNetwork) -> None:
    """Send payloads without a pause while members are killed. ENCLAVE_KILLS=50 makes fifty kills."""
    kills = int(os.environ.get("ENCLAVE_KILLS", "4"))
    chance = Random(47)
    a, b = Tool(network.nodes[0]), Tool(network.nodes[1])
    network.wait(lambda: a.knows(b) and b.knows(a), 60, "the enclaves finding each other")
    acknowledged: list[str] = []
    is_over = threading.Event()

    def send() -> None:
        while not is_over.is_set():
            try:
                acknowledged.append(a.send(PLANTED, b))
            except (OSError, http.client.HTTPException, AssertionError):
                time.sleep(0.05)  # sending fails while a killed member is down

    senders = [threading.Thread(target=send) for _ in range(4)]
    for sender in senders:
        sender.start()
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.2, 0.8))
            victim = chance.choice((0, 1))
            network.kill(victim)
            network.nodes[victim].start()
        wait_for(lambda: len(acknowledged) > 10 * kills, 120, "payloads that were acknowledged")
    finally:
        is_over.set()
        for sender in senders:
            sender.join()
    network.wait(lambda: a.knows(b) and b.knows(a), 60, "the enclaves finding each other again")
    for tool in (a, b):
        network.wait(lambda tool=tool: None not in map(tool.receive, acknowledged), 180, "every payload")  # type: ignore[misc]
