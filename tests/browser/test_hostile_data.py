"""The web interface shows hostile chain data as text: revert strings, logs, call data, ABIs, extra data, node names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceAddress, ServiceKind
from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.web.service import PageFiles
from tests.browser.chromium import Browser
from tests.browser.test_page import FREE, base, is_calm, send
from tests.integration.gateway_stage import Gateway

MARKUP = (
    '<img src=x onerror="window.hostile=1"><svg/onload=window.hostile=1><script>window.hostile=1</script>'
    '\'"><a href="javascript:window.hostile=1">x</a>\u202e\u0000\x1b[31m{{7*7}}${window.hostile=1}'
)
EXTRA = b"<svg/onload=window.hostile=1>\xff\xfe\x00"
HAS_MARKUP = (
    "window.hostile !== undefined || [...document.querySelectorAll('img[src=x], svg[onload], [onerror], [onload],"
    " a[href^=\"javascript:\"], script:not([src])')].some((one) => !one.closest('head'))"
)
REVERT, LOG, RETURN = 0xFD, 0xA1, 0xF3


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    path = tmp_path_factory.mktemp("hostile") / "data"
    with NodeProcess(path, *FREE, f"--miner-extra-data=0x{EXTRA.hex()}", command=("dev",)) as started:
        yield started


@pytest.fixture
def page(node: NodeProcess, browser: Browser) -> Iterator[Browser]:
    browser.look()
    browser.open(base(node), "document.getElementById('live')?.dataset.state === 'live'")
    yield browser
    assert browser.value(HAS_MARKUP) is False
    is_calm(browser, node)


def encoded(text: str) -> bytes:
    """Return the ABI form of one string."""
    data = text.encode()
    return (32).to_bytes(32, "big") + len(data).to_bytes(32, "big") + data + bytes(-len(data) % 32)


def deployed(node: NodeProcess, ending: bytes, payload: bytes) -> str:
    """Deploy a contract that copies the payload into memory and then runs these instructions."""
    size = len(payload).to_bytes(2, "big")
    head = bytes((0x61, *size, 0x60, 0, 0x60, 0, 0x39)) + ending
    code = head[:4] + bytes((len(head),)) + head[5:] + payload
    create = bytes((0x61, *len(code).to_bytes(2, "big"), 0x80, 0x60, 12, 0x60, 0, 0x39, 0x60, 0, RETURN)) + code
    key = DEV_KEYS[0]
    nonce = int(node.rpc("eth_getTransactionCount", "0x" + key.address.hex(), "pending"), 16)
    sent = node.send(legacy_transaction(key, nonce, to=None, data=create, gas=3_000_000))
    address: str = node.receipt(sent)["contractAddress"]
    return address


def reverting(node: NodeProcess, payload: bytes) -> str:
    return deployed(node, bytes((0x61, *len(payload).to_bytes(2, "big"), 0x60, 0, REVERT)), payload)


def logging(node: NodeProcess, payload: bytes) -> str:
    """Deploy a contract that logs the payload under the topic of `Said(string)` and returns it."""
    size = bytes((0x61, *len(payload).to_bytes(2, "big")))
    topic = bytes.fromhex(node.rpc("web3_sha3", "0x" + b"Said(string)".hex())[2:])
    ending = bytes((0x7F, *topic)) + size + bytes((0x60, 0, LOG)) + size + bytes((0x60, 0, RETURN))
    return deployed(node, ending, payload)


def drop(page: Browser, name: str, content: object) -> None:
    """Drop a file onto the page."""
    page.value(
        "(() => { const files = new DataTransfer();"
        f"files.items.add(new File([{json.dumps(json.dumps(content))}], {json.dumps(name)}));"
        "dispatchEvent(new DragEvent('drop', { dataTransfer: files, cancelable: true })); })()"
    )


def test_a_revert_string_is_text(page: Browser, node: NodeProcess) -> None:
    address = reverting(node, bytes.fromhex("08c379a0") + encoded(MARKUP))
    failed = send(node, address, "0x" + MARKUP.encode().hex())
    page.go(f"#/tx/{failed}")
    page.reads("Reverted", "Calls", "<img src=x onerror=")
    page.go(f"#/address/{address}")
    page.reads("Contract")


def test_logs_and_names_of_an_abi_are_text(page: Browser, node: NodeProcess) -> None:
    address = logging(node, encoded(MARKUP))
    sent = send(node, address, "0x17d7de7c")  # 0x17d7de7c is the selector of getName()
    artifact = {
        "contractName": MARKUP,
        "address": address,
        "abi": [
            {"type": "event", "name": "Said", "inputs": [{"name": MARKUP, "type": "string"}]},
            {
                "type": "function", "name": "getName", "stateMutability": "view",
                "inputs": [], "outputs": [{"name": MARKUP, "type": "string"}],
            },
        ],
    }  # fmt: skip
    drop(page, MARKUP.replace("\u0000", ""), artifact)
    page.go(f"#/tx/{sent}")
    page.reads("getName()", "Said(string)", "<img src=x onerror=")
    page.go(f"#/address/{address}")
    page.reads("Read")
    page.click("#main form button")
    page.reads("<img src=x onerror=")
    page.go("#/abis")
    page.reads(address)
    page.value("localStorage.removeItem('ophion-abis')")


def test_extra_data_and_addresses_of_the_page_are_text(page: Browser, node: NodeProcess) -> None:
    send(node, "0x" + "44" * 20, "0x" + MARKUP.encode().hex())
    head = node.rpc("eth_blockNumber")
    assert node.rpc("eth_getBlockByNumber", head, False)["extraData"] == "0x" + EXTRA.hex()
    page.go(f"#/block/{int(head, 16)}")
    page.reads("Extra data")
    for kind in ("search", "tx", "block", "address", "playground"):
        page.go(f"#/{kind}/%3Cimg%20src%3Dx%20onerror%3D%22window.hostile%3D1%22%3E")
        page.until("document.querySelector('#main h1')?.textContent")
        assert page.value(HAS_MARKUP) is False


def test_names_of_nodes_are_text(browser: Browser, node: NodeProcess, tmp_path: Path) -> None:
    places = {ServiceKind.JSON_RPC: ServiceAddress("127.0.0.1", node.ports["json-rpc"])}
    site = BackendNetwork(
        MARKUP, "clique", (BackendNode(MARKUP, "validator", places, node.rpc("web3_clientVersion") + MARKUP),)
    )
    with Gateway(site, page=PageFiles().answer) as gateway:
        browser.look()
        browser.open(f"http://127.0.0.1:{gateway.port}/", "document.querySelector('#main h1')?.textContent")
        browser.reads("<img src=x onerror=")
        for view in ("#/", "#/consensus", "#/blocks"):
            browser.go(view)
            browser.until("document.querySelector('#main h1')?.textContent")
            assert browser.value(HAS_MARKUP) is False
