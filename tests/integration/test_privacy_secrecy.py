"""Secrecy on real nodes: the data that C receives and stores, and the public data of A and B, contain no secrets.

A and B are members. C has an enclave but is not a participant; `DecryptingRelay` records all messages to C. D has no
privacy and follows the same chain.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from struct import unpack_from
from typing import Any

import pytest
from websockets.sync.client import connect

from ophion.enclave.group_ids import legacy_id
from ophion.native.crypto import PrivateKey
from ophion.native.privacy import PrivateLedger
from ophion.native.store import open_store
from ophion.rpc.methods import all_methods
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import NodeProcess, RpcFailure
from ophion.testing.private_transactions import NUMBER_CONTRACT, PrivateClient, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for

LIMIT_S = 60.0
PRECOMPILE = (126).to_bytes(20, "big")
MARKERS = 150
PAGE, HEAD, BRANCH, LEAF, OVERFLOW, LONG_VALUE = 4096, 16, 1, 2, 4, 1
"""Flags and sizes of LMDB's page format."""
ENCLAVE_TABLES = ["payloads", "arrivals", "groups", "lookup", "outbox", "cursors", "handed"]

CODE = b"planted: the code of a contract!"
ARGUMENT = b"planted: an argument of a call, "
CONSTRUCTOR = b"planted: what a constructor gets"
NAME = b"planted-name-of-a-group"
AUTHOR = PrivateKey(b"\x5e" * 32)
"""An account that is not used on the public chain."""


def echo_contract() -> bytes:
    """Return init code of a contract that logs, stores and returns its input, with a text in its code."""
    runtime = bytes.fromhex("366000600037" + "366000a0" + "600035600055" + "366000f3") + CODE
    size = len(runtime)
    init = bytes.fromhex(f"60{size:02x}600c60003960{size:02x}6000f3")
    assert len(init) == 12
    return init + runtime + CONSTRUCTOR


def forms(planted: bytes) -> set[bytes]:
    """Return all forms of a text: plain, hex, and base64 applied once and twice, at any offset."""
    found = {planted, planted.hex().encode(), planted.hex().upper().encode()}
    layers = {planted}
    for _ in range(2):
        layers = {b64encode(bytes(shift) + one)[4 * (shift > 0) : -4] for one in layers for shift in range(3)}
        found |= layers
    assert min(map(len, found)) >= 16
    return found


def found_in(content: bytes, planted: Iterable[bytes]) -> list[bytes]:
    return [one for one in planted for form in forms(one) if form in content]


class Story:
    """Private transactions of A and B with planted texts, and all data that other nodes could see."""

    def __init__(self, network: TestNetwork) -> None:
        self.network = network
        nodes = network.nodes
        self.a, self.b = PrivateClient(nodes[0], AUTHOR, CHAIN_ID), PrivateClient(nodes[1], DEV_KEYS[1], CHAIN_ID)
        self.c, self.d = nodes[2], nodes[3]
        for index in (0, 1, 2):
            wait_for(lambda index=index: len(nodes[index].rpc("priv_status")["peers"]) >= 2, LIMIT_S, "enclaves")
        self.group = legacy_id([self.a.enclave_key, self.b.enclave_key])
        created = self.a.send(echo_contract(), private_for=(self.b.enclave_key,))
        self.contract: str = self.a.receipt(created)["contractAddress"]
        called = self.a.send(ARGUMENT, to=self.contract, private_for=(self.b.enclave_key,))
        receipt = self.a.receipt(called)
        assert receipt["logs"][0]["data"] == receipt["output"] == "0x" + ARGUMENT.hex()
        members = [text(self.a.enclave_key), text(self.b.enclave_key)]
        self.named: str = self.a.node.rpc("priv_createPrivacyGroup", members, NAME.decode(), ARGUMENT.decode())
        self.markers = [created, called, *self._many()]
        network.wait(lambda: self._is_everywhere(self.markers[-1]), LIMIT_S, "the last marker")
        self.planted = self._planted()
        """Secrets that only members may find."""
        self.sealed = self._sealed()
        """Sealed payloads, which only members get."""

    def _many(self) -> list[str]:
        """Make a chain with many markers, and with transactions that look like markers."""
        nonce = int(self.a.node.rpc("priv_getTransactionCount", address(AUTHOR), text(self.group)), 16)
        to, members = self.contract, (self.b.enclave_key,)
        markers = [self.a.send(ARGUMENT, to=to, private_for=members, nonce=nonce + n) for n in range(MARKERS)]
        public = legacy_transaction(
            DEV_KEYS[1], 0, to=None, data=NUMBER_CONTRACT, gas=300_000, gas_price=0, chain_id=CHAIN_ID
        )
        self.a.node.send(public)
        odd = [(b"", 21_000), (b"\x11" * 32, 21_512), (b"\x22" * 64, 22_024), (b"\x33" * 31, 90_000)]
        for index, (data, gas) in enumerate(odd):
            raw = legacy_transaction(
                DEV_KEYS[2], index, to=PRECOMPILE, data=data, gas=gas, gas_price=0, chain_id=CHAIN_ID
            )
            markers.append(self.a.node.send(raw))
        return markers

    def _is_everywhere(self, marker: str) -> bool:
        return all(node.rpc("eth_getTransactionReceipt", marker) is not None for node in self.network.nodes)

    def _planted(self) -> list[bytes]:
        records = [self.a.node.rpc("priv_getPrivateTransaction", marker) for marker in self.markers[:2]]
        hashes = [bytes.fromhex(record["hash"][2:]) for record in records]
        private = bytes.fromhex(self.contract[2:])
        return [CODE, ARGUMENT, CONSTRUCTOR, NAME, AUTHOR.address, private, self.group, *hashes]

    def _sealed(self) -> list[bytes]:
        with at_rest(self.a.node):
            store = open_store(self.a.node.data_path / "database", read_only=True)
            records = [record for _, record in store.rows("payloads", b"", b"", 10_000)]
            store.close()
        assert len(records) == MARKERS + 2
        return records


@contextmanager
def at_rest(node: NodeProcess) -> Iterator[None]:
    """Stop the node, so that no process writes to its database."""
    node.stop()
    yield
    node.start()


def address(key: PrivateKey) -> str:
    return "0x" + key.address.hex()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    private = (
        "--privacy-enabled",
        "--privacy-delivery=queue",
        "--logging=TRACE",
        "--graphql-http-enabled",
        "--graphql-http-port=0",
    )
    plain = ("--rpc-ws-enabled", "--rpc-ws-port=0", "--rpc-ws-api=ETH,EEA,PRIV")
    own: dict[int, Sequence[str]] = {0: private, 1: private, 2: private, 3: plain}
    path = tmp_path_factory.mktemp("secrecy")
    with TestNetwork(path, "qbft", validators=1, followers=3, tapped=2, own=own) as network:
        yield Story(network)


def content_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file())


def in_use(database: bytes) -> bytes:
    """Return the rows of a copied LMDB file, without unused space.

    LMDB reuses page memory without clearing it. So two parts of a page may hold old bytes of any table: the gap between
    the row offsets (up to `lower`) and the rows (from `upper`), and the end of a page after a long value.
    """
    used_parts: list[bytes] = []
    long_values: list[bytes] = []
    number = 0
    while number * PAGE < len(database):
        page = database[number * PAGE : (number + 1) * PAGE]
        flags, lower, upper = unpack_from("<HHH", page, 10)
        if flags & OVERFLOW:
            number += lower | upper << 16  # the field holds the number of overflow pages
            continue
        if flags & LEAF:
            for place in unpack_from(f"<{(lower - HEAD) // 2}H", page, HEAD):
                low, high, kind, key_size = unpack_from("<HHHH", page, place)
                if kind & LONG_VALUE:
                    start = unpack_from("<Q", page, place + 8 + key_size)[0] * PAGE + HEAD
                    long_values.append(database[start : start + (low | high << 16)])
        used_parts += (page[:lower], page[upper:]) if flags & (BRANCH | LEAF) else (page,)
        number += 1
    assert long_values
    return b"".join(used_parts + long_values)


def copied(node: NodeProcess, to: Path, *, only_public: bool) -> bytes:
    """Return all used bytes of a node's tables. With `only_public`, the private tables are excluded."""
    to.mkdir()
    source = open_store(node.data_path / "database", read_only=True)
    with (to / "data.mdb").open("wb") as target:
        source.copy_to(target.fileno())
    source.close()
    if only_public:
        store = open_store(to)
        PrivateLedger(store).clear()
        store.clear_rows(ENCLAVE_TABLES)
        assert {name for name, entries, _ in store.usage() if entries} >= {
            "bodies",
            "preimage_runs",
            "node_rows",
            "code",
        }
        with (to / "public").open("wb") as target:
            store.copy_to(target.fileno())
        store.close()
        return in_use((to / "public").read_bytes())
    return in_use((to / "data.mdb").read_bytes())


def test_every_message_that_c_receives_holds_nothing_private(story: Story) -> None:
    recorded = story.network.recorded(2)
    received = b"\n".join(recorded)
    marker = story.a.node.rpc("eth_getTransactionByHash", story.markers[0])
    assert bytes.fromhex(marker["input"][2:]) in received, "the markers did come this way, opened"
    assert story.b.enclave_key in received, "and so did what enclaves tell each other"
    assert found_in(received, story.planted) == []
    # node C received no sealed payload
    assert all(record[-40:] not in received for record in story.sealed)


def test_everything_that_c_stores_holds_nothing_private(story: Story) -> None:
    with at_rest(story.c):
        stored = content_of(story.c.data_path)
    assert found_in(stored, story.planted) == []
    assert all(record[-40:] not in stored for record in story.sealed)


def test_the_public_tables_of_members_hold_nothing_private(story: Story, tmp_path: Path) -> None:
    """Searches the public tables: blocks, receipts, logs, accounts, storage, trie nodes, code, preimages, names."""
    planted = story.planted
    for index, member in enumerate((story.a.node, story.b.node)):
        # as a control, the same search finds the texts in private tables, which are not encrypted
        with at_rest(member):
            everything = copied(member, tmp_path / f"all{index}", only_public=False)
            public = copied(member, tmp_path / f"public{index}", only_public=True)
        assert {CODE, ARGUMENT, story.group} <= set(found_in(everything, planted))
        assert bytes.fromhex(story.markers[0][2:]) in public
        assert found_in(public, planted) == []


def test_graphql_shows_a_member_the_marker_and_nothing_private(story: Story) -> None:
    query = """{ transaction(hash: "%s") {
        to { address } inputData status createdContract { address } logs { data } value } }"""
    connection = HTTPConnection("127.0.0.1", story.a.node.ports["graphql-http"], timeout=LIMIT_S)
    for marker in story.markers[:2]:
        connection.request(
            "POST", "/graphql", json.dumps({"query": query % marker}), {"Content-Type": "application/json"}
        )
        content = connection.getresponse().read()
        shown = json.loads(content)["data"]["transaction"]
        assert shown["to"]["address"] == "0x" + PRECOMPILE.hex()
        assert (shown["createdContract"], shown["logs"], len(shown["inputData"])) == (None, [], 66)
        assert found_in(content, story.planted) == []
    connection.close()


def test_no_log_holds_anything_private(story: Story) -> None:
    planted = [one for one in story.planted if one != story.group]  # the logs of members may show group ids
    for node in story.network.nodes:
        assert found_in(node.log.read_bytes(), planted) == []


def test_a_node_without_privacy_follows_a_chain_full_of_markers(story: Story) -> None:
    """A marker has the gas, logs, state changes and receipt of a call to an empty account. So all nodes agree on every
    block.
    """
    network = story.network

    def agrees() -> None:
        number = network.height(0)
        network.wait(lambda: network.height(3) >= number, LIMIT_S, f"block {number} at D")
        assert network.agrees((0, 1, 2, 3))

    agrees()
    for marker in story.markers:
        receipts = [node.rpc("eth_getTransactionReceipt", marker) for node in (story.a.node, story.d)]
        assert receipts[0] == receipts[1]
        assert (receipts[1]["status"], receipts[1]["logs"]) == ("0x1", [])
    # node D synchronises again from genesis, and only with data of its peers
    story.d.stop()
    network.wipe(3)
    story.d.start()
    agrees()


def off(name: str) -> str:
    what = " to get the precompiled address" if name == "priv_getPrivacyPrecompileAddress" else ""
    return f"Privacy is not enabled{what}"


PRIVATE_METHODS = [spec for spec in all_methods().specs if spec.group in ("eea", "priv", "privx")]


def test_each_method_says_that_privacy_is_off_over_http_and_websocket(story: Story) -> None:
    with connect(f"ws://127.0.0.1:{story.d.ports['ws-rpc']}", max_size=None) as socket:
        for number, spec in enumerate(PRIVATE_METHODS):
            socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": spec.name, "params": []}))
            answer: dict[str, Any] = json.loads(socket.recv(timeout=LIMIT_S))
            assert answer == {
                "jsonrpc": "2.0",
                "id": number,
                "error": {"code": -50100, "message": off(spec.name)},
            }, spec.name
            if "http" in spec.transports:
                with pytest.raises(RpcFailure, match=f"-50100 {off(spec.name)}"):
                    story.d.rpc(spec.name)
    assert {"priv_subscribe", "priv_unsubscribe", "eea_sendRawTransaction"} <= {spec.name for spec in PRIVATE_METHODS}
