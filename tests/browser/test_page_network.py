"""Tests the web interface of a network in a real browser: diagram, consensus, votes, an offline node, a flood."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceAddress, ServiceKind
from ophion.testing.network import TestNetwork
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.web.service import PageFiles
from tests.browser.chromium import Browser
from tests.integration.gateway_stage import Gateway

OPTIONS = (
    "--rpc-http-api=ADMIN,DEBUG,ETH,QBFT,NET,TXPOOL,WEB3,TRACE", "--rpc-ws-enabled", "--rpc-ws-port=0",
    "--graphql-http-enabled", "--graphql-http-port=0", "--tx-pool-max-size=100000",
)  # fmt: skip
NAMES = ("validator1", "validator2", "validator3", "validator4", "rpcnode")
LOAD_S = float(os.environ.get("OPHION_PAGE_LOAD", "6"))
"""Duration of the flood; the figures of docs/web-interface.md are from 60 seconds."""


def keep_ports(node: NodeProcess) -> None:
    """Reserve the ports of a node, so that the gateway finds the node on the same ports after a restart."""
    names = ("--rpc-http-port", "--rpc-ws-port", "--graphql-http-port")
    fixed_ports = {f"{name}=0": f"{name}={port}" for name, port in zip(names, free_ports(3), strict=True)}
    node._arguments = [fixed_ports.get(argument, argument) for argument in node._arguments]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNetwork]:
    path = tmp_path_factory.mktemp("network")
    made = TestNetwork(path, "qbft", validators=4, followers=1, options=OPTIONS)
    for node in made.nodes:
        keep_ports(node)
    with made as started:
        started.wait(lambda: min(started.heights()) >= 2, 60, "the second block")
        yield started


def site_node(index: int, node: NodeProcess) -> BackendNode:
    kinds = {ServiceKind.JSON_RPC: "json-rpc", ServiceKind.WEBSOCKET: "ws-rpc", ServiceKind.GRAPHQL: "graphql-http"}
    places = {kind: ServiceAddress("127.0.0.1", node.ports[name]) for kind, name in kinds.items()}
    return BackendNode(NAMES[index], "rpc" if index == 4 else "validator", places, node.rpc("net_enode"))


@pytest.fixture(scope="module")
def base(network: TestNetwork) -> Iterator[str]:
    nodes = tuple(site_node(index, network.nodes[index]) for index in (4, 0, 1, 2, 3))
    with Gateway(BackendNetwork("quickstart", "qbft", nodes), page=PageFiles().answer) as gateway:
        yield f"http://127.0.0.1:{gateway.port}/"


@pytest.fixture
def page(base: str, browser: Browser) -> Iterator[Browser]:
    browser.look()
    browser.open(base, "document.getElementById('live')?.dataset.state === 'live'")
    yield browser
    assert browser.complaints == []
    assert [
        one for one in browser.asked if not one.startswith((base, base.replace("http", "ws"), "data:", "about:"))
    ] == []


def test_the_network_is_drawn(page: Browser) -> None:
    page.reads("5 of 5", "The network is producing blocks.")
    page.until("document.querySelectorAll('.network .node').length === 5")
    page.until("document.querySelectorAll('.network line').length === 10")
    lit = set()
    for _ in range(3):
        lit.add(page.until("document.querySelector('.network .node.lit text')?.textContent"))
        page.until(f"document.querySelector('.network .node.lit text')?.textContent !== {json.dumps(max(lit))}")
    assert lit <= set(NAMES[:4])
    page.until("document.querySelectorAll('.network .down').length === 0")


VIEWS = {
    "overview": "#/", "blocks": "#/blocks", "block": "#/block/1", "consensus": "#/consensus",
    "playground": "#/playground", "graphql": "#/graphql", "contracts": "#/abis", "search": "#/search/nothing",
}  # fmt: skip
SCREENSHOTS = os.environ.get("OPHION_SCREENSHOTS")
"""Folder for screenshots; docs/images/web-interface.png is `overview-wide-light.png` of such a run."""


@pytest.mark.parametrize(("width", "shape"), [(1280, "wide"), (420, "narrow")])
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_every_view_can_be_photographed(page: Browser, tmp_path: Path, width: int, shape: str, is_dark: bool) -> None:
    folder = Path(SCREENSHOTS) if SCREENSHOTS else tmp_path
    page.look(width, 860, is_dark)
    for name, view in VIEWS.items():
        page.go(view)
        page.until("document.querySelector('#main h1')?.textContent")
        if name == "overview":
            page.reads("5 of 5", "The network is producing blocks.")
        picture = folder / f"{name}-{shape}-{'dark' if is_dark else 'light'}.png"
        page.picture(picture, whole=False)
        assert picture.stat().st_size > 5_000
        assert page.value("document.documentElement.scrollWidth") <= width, f"{name} scrolls sideways"


def test_validators_and_their_votes(page: Browser, network: TestNetwork) -> None:
    page.go("#/consensus")
    text = page.reads("QBFT", *NAMES[:4], "3 of 4", "Prepares", "Commits", "No open votes.")
    for key in network.keys[:4]:
        assert "0x" + key.address.hex() in text
    wanted = "0x" + "ab" * 20
    page.until("document.querySelectorAll('.votes input[type=checkbox]').length === 4")
    page.value(f"document.getElementById('vote-address').value = '{wanted}'")
    page.value("document.querySelectorAll('.votes input[type=checkbox]')[3].checked = false")
    page.value("document.querySelectorAll('.votes input[type=checkbox]')[2].checked = false")
    page.click(".votes button.main")
    page.reads("2 nodes vote now", "2 of 3 needed")
    votes = [network.nodes[index].rpc("qbft_getPendingVotes") for index in range(4)]
    assert votes.count({wanted: True}) == 2
    page.value("[...document.querySelectorAll('#main button')].find((one) => one.textContent === 'Discard').click()")
    page.reads("No open votes.")
    assert [network.nodes[index].rpc("qbft_getPendingVotes") for index in range(4)] == [{}] * 4


class Flood(threading.Thread):
    """Sends as many transfers as the node accepts, in batches."""

    def __init__(self, node: NodeProcess, seconds: float) -> None:
        super().__init__(daemon=True)
        self._port = node.ports["json-rpc"]
        self._seconds = seconds
        self.sent = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        key, end = DEV_KEYS[1], time.monotonic() + self._seconds
        while time.monotonic() < end:
            raw = [legacy_transaction(key, self.sent + at, gas_price=0, chain_id=1337) for at in range(500)]
            batch = [
                {"jsonrpc": "2.0", "id": at, "method": "eth_sendRawTransaction", "params": ["0x" + one.hex()]}
                for at, one in enumerate(raw)
            ]
            connection.request("POST", "/", json.dumps(batch), {"Content-Type": "application/json"})
            if any("error" in one for one in json.loads(connection.getresponse().read())):
                time.sleep(0.3)  # the pool is full, so wait and send the rejected transfers again
                pending = {"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionCount"}
                pending["params"] = ["0x" + key.address.hex(), "pending"]
                connection.request("POST", "/", json.dumps(pending), {"Content-Type": "application/json"})
                self.sent = int(json.loads(connection.getresponse().read())["result"], 16)
            else:
                self.sent += len(raw)
        connection.close()


def test_a_flood_is_sampled(page: Browser, network: TestNetwork) -> None:
    page.until("document.querySelector('.tile .figure') !== null")
    page.value(
        "window.changes = 0; new MutationObserver(() => changes++)"
        ".observe(document.querySelector('.tile .figure'), { childList: true, characterData: true, subtree: true })"
    )
    flood = Flood(network.nodes[4], LOAD_S)
    before, begun, first = page.cost(), time.monotonic(), network.height(4)
    asked = len(page.asked)
    flood.start()
    flood.join()
    passed, after, blocks = time.monotonic() - begun, page.cost(), network.height(4) - first
    share = (after[0] - before[0]) / passed
    print(
        f"{flood.sent / passed:.0f} tx/s sent in {blocks} blocks: "
        f"{100 * share:.1f} % of a core and {after[1] / 1e6:.0f} MB for the page"
    )
    assert flood.sent > 500
    assert after[1] < 200e6
    page.until("parseFloat(document.querySelectorAll('.tile .figure')[2].textContent.replace(/,/g, '')) > 10")
    assert page.value("changes") <= 2.5 * passed + 5
    assert page.value("document.querySelectorAll('*').length") < 1500
    assert len(page.asked) - asked < 12 * passed + 30
    for view in ("#/blocks", "#/block/latest", "#/consensus", "#/address/0x" + DEV_KEYS[1].address.hex()):
        page.go(view)
        assert "This view failed" not in page.text("#main"), view
        assert page.value("document.querySelectorAll('*').length") < 3000, view


def test_a_node_that_is_down(page: Browser, network: TestNetwork, base: str) -> None:
    network.kill(1)
    page.reads("4 of 5", "validator2 is offline: the node is not running.")
    page.until("document.querySelector('.network .node.down text')?.textContent === 'validator2'")
    assert page.value("document.getElementById('live').dataset.state") == "live"
    # the browser logs an error for a request that the page sent while the node stopped, so ignore this error
    page.complaints[:] = [one for one in page.complaints if "502" not in one or "/validator2/" not in one]
    page.go("#/consensus")
    page.reads("offline")
    for view in ("#/", "#/blocks", "#/playground", "#/graphql"):
        page.go(view)
        assert "This view failed" not in page.text("#main"), view
    network.nodes[1].start()
    page.go("#/")
    page.reads("5 of 5")


def test_the_page_recovers_when_its_node_restarts(base: str, browser: Browser, network: TestNetwork) -> None:
    """While the node is down, requests fail, and the browser logs errors.

    The page shows the outage and then recovers.
    """
    browser.look()
    browser.open(base, "document.getElementById('live')?.dataset.state === 'live'")
    browser.value("window.isTheSame = true")
    network.kill(4)
    browser.until("document.getElementById('live').dataset.state === 'silent'")
    browser.reads("rpcnode is offline")
    network.nodes[4].start()
    browser.until("document.getElementById('live').dataset.state === 'live'", 60)
    browser.reads("5 of 5")
    assert browser.value("window.isTheSame") is True
    assert not [one for one in browser.complaints if "Failed to load" not in one and "WebSocket" not in one]


def test_signers_of_clique_take_turns(browser: Browser, tmp_path: Path) -> None:
    options = ("--rpc-http-api=ADMIN,CLIQUE,DEBUG,ETH,NET,TXPOOL,WEB3", *OPTIONS[1:])
    with TestNetwork(tmp_path, "clique", validators=2, followers=0, options=options) as network:
        nodes = tuple(site_node(index, network.nodes[index]) for index in range(2))
        with Gateway(BackendNetwork("clique", "clique", nodes), page=PageFiles().answer) as gateway:
            browser.look()
            browser.open(f"http://127.0.0.1:{gateway.port}/", "!!document.querySelector('.network .node.lit')")
            browser.reads("2 of 2", "not in header")
            for name in NAMES[:2]:
                browser.until(f"document.querySelector('.network .node.lit text')?.textContent === '{name}'")
            browser.go("#/consensus")
            text = browser.reads("Clique", "Signers", "Proposer", "waiting for the in-turn signer", "No open votes.")
            assert "Quorum" not in text
            assert browser.complaints == []


if os.environ.get("OPHION_PICTURES"):

    def test_pictures(page: Browser) -> None:
        folder = Path(os.environ["OPHION_PICTURES"])
        folder.mkdir(parents=True, exist_ok=True)
        for name, width, is_dark in (("light", 1280, False), ("dark", 1280, True), ("narrow", 400, False)):
            page.look(width, 900, is_dark)
            for at, view in enumerate(("#/", "#/consensus")):
                page.go(view)
                page.until("document.querySelector('.figure')?.textContent !== '…'")
                time.sleep(1.5)
                page.picture(folder / f"network-{at:02}-{name}.png")
