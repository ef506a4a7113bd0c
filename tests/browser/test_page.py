"""Tests the page of a single node in a real browser: every view, live changes, contracts, search, playground,
tokens.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.browser.axe import axe_source
from tests.browser.chromium import Browser
from tests.clients.contracts import data_of

FREE = ("--page-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0")
FOUND_BY_AXE = (
    "axe.run().then((told) => told.violations.map((one) => "
    "[one.id, one.nodes.map((node) => node.html.slice(0, 200) + node.failureSummary)]))"
)
VIEWS = ("#/", "#/blocks", "#/block/0", "#/address/0xfe3b557e8fb62b89f4916b721be55ceb828dbd73", "#/abis", "#/consensus",
         "#/playground", "#/playground/eth_call", "#/graphql", "#/search/nothing", "#/tx/0x" + "11" * 32)  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("page") / "data", *FREE, command=("dev",)) as started:
        yield started


def base(node: NodeProcess) -> str:
    return f"http://127.0.0.1:{node.ports['page-http']}/"


@pytest.fixture
def page(node: NodeProcess, browser: Browser) -> Iterator[Browser]:
    browser.look()
    browser.open(base(node), "document.getElementById('live')?.dataset.state === 'live'")
    yield browser
    is_calm(browser, node)


def is_calm(browser: Browser, node: NodeProcess) -> None:
    """Check that the console has no errors and that no request went to another host."""
    own = base(node)
    assert browser.complaints == []
    assert [
        one for one in browser.asked if not one.startswith((own, own.replace("http", "ws"), "data:", "about:"))
    ] == []


def deploy(node: NodeProcess, name: str) -> str:
    """Deploy one of web3.py's contracts; return its address."""
    key = DEV_KEYS[0]
    nonce = int(node.rpc("eth_getTransactionCount", "0x" + key.address.hex(), "pending"), 16)
    code = bytes.fromhex(data_of(name)["bytecode"][2:])
    sent = node.send(legacy_transaction(key, nonce, to=None, data=code, gas=3_000_000))
    address: str = node.receipt(sent)["contractAddress"]
    return address


def send(node: NodeProcess, to: str, data: str = "0x", value: int = 0, key: int = 0) -> str:
    """Send a transaction and wait until it is mined; return its hash."""
    nonce = int(node.rpc("eth_getTransactionCount", "0x" + DEV_KEYS[key].address.hex(), "pending"), 16)
    raw = legacy_transaction(
        DEV_KEYS[key], nonce, to=bytes.fromhex(to[2:]), data=bytes.fromhex(data[2:]), gas=500_000, value=value
    )
    sent = node.send(raw)
    node.receipt(sent)
    return sent


# --- an empty chain ------------------------------------------------------------------------------


def test_every_view_works_on_an_empty_chain(page: Browser, node: NodeProcess) -> None:
    assert node.rpc("eth_blockNumber") == "0x0", "the first test of this file"
    for view in VIEWS:
        page.go(view)
        assert page.value("document.querySelector('#main h1')?.textContent"), view
        assert "This view failed" not in page.text("#main"), view
    page.go("#/")
    page.reads("The first transaction makes the first block", "The chain has only its genesis block")


def test_nothing_is_wider_than_the_window(page: Browser, node: NodeProcess) -> None:
    for is_dark in (False, True):
        page.look(400, 800, is_dark)
        for view in VIEWS:
            page.go(view)
            assert page.value("document.documentElement.scrollWidth") <= 400, view
    shade = page.value("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    page.until("document.documentElement.dataset.theme === 'light'")
    assert page.value("getComputedStyle(document.body).backgroundColor") != shade
    page.click("#theme")
    page.click("#theme")


def test_addresses_that_lead_nowhere(page: Browser) -> None:
    messages = {
        "#/block": "Block 0", "#/block/99": "Block 99 not found", "#/block/abc": "This view failed",
        "#/tx": "Not a transaction hash", "#/tx/0x12": "Not a transaction hash", "#/address": "Not an address",
        "#/address/0xzz": "Not an address", "#/nothing": "Head", "#/%": "Head", "#/search/%zz": "Nothing found",
        "#/playground/no_such": "eth_getBlockByNumber", "#/blocks/99": "Blocks",
    }  # fmt: skip
    for address, words in messages.items():
        page.go(address)
        page.reads(words)


# --- live ----------------------------------------------------------------------------------------


def test_blocks_appear_without_reloading(page: Browser, node: NodeProcess) -> None:
    page.value("window.isTheSame = true")
    for _ in range(3):
        send(node, "0x" + "22" * 20, value=10**18)
    number = node.height
    page.until(f"document.querySelector('.tile .figure').textContent === '{number}'")
    page.reads("1 ether")
    cards = "[...document.querySelectorAll('.card')]"
    latest = f"{cards}.find((one) => one.querySelector('h2')?.textContent === 'Latest transactions')"
    # the list shows transactions of several blocks
    page.until(f"{latest}.querySelectorAll('tbody tr').length >= 3")
    page.go("#/blocks")
    send(node, "0x" + "22" * 20)
    page.until(f"document.querySelector('#main tbody a').textContent === '{number + 1}'")
    page.go(f"#/block/{number}")
    page.reads(f"Block {number}", "1 transaction", "transfer")
    assert page.value("window.isTheSame") is True


def test_a_transaction_that_waits_is_followed_until_it_is_mined(page: Browser, node: NodeProcess) -> None:
    node.rpc("miner_stop")
    nonce = int(node.rpc("eth_getTransactionCount", "0x" + DEV_KEYS[2].address.hex(), "pending"), 16)
    sent = node.send(legacy_transaction(DEV_KEYS[2], nonce))
    page.go(f"#/tx/{sent}")
    page.reads("pending", "in the pool")
    node.rpc("miner_start")
    page.reads("success")


# --- contracts -----------------------------------------------------------------------------------


def test_a_transaction_is_explained(page: Browser, node: NodeProcess) -> None:
    page.value("localStorage.removeItem('ophion-abis')")
    address = deploy(node, "revert")
    failed = send(node, address, "0x185c38a4")  # 0x185c38a4 is the selector of revertWithMessage()
    page.go(f"#/tx/{failed}")
    text = page.reads("Reverted", "Calls", "CALL", "State changes", "nonce")
    assert "Function has been reverted." in text
    assert "No known ABI has this function" in text
    # the user drops an ABI file on the page, which uses the ABI at once and stores it
    artifact = {"contractName": "Reverts", "abi": data_of("revert")["abi"], "address": address}
    page.value(
        "(() => { const files = new DataTransfer();"
        f"files.items.add(new File([{json.dumps(json.dumps(artifact))}], 'Reverts.json'));"
        "dispatchEvent(new DragEvent('drop', { dataTransfer: files, cancelable: true })); })()"
    )
    page.reads("revertWithMessage()")
    page.open(base(node) + f"#/tx/{failed}")
    page.reads("revertWithMessage()", "Function has been reverted.")
    page.go("#/abis")
    page.reads("Reverts", address)
    page.go(f"#/address/{address}")
    page.reads("Reverts", "Sent transactions", "Calls")


def test_logs_and_storage_are_shown(page: Browser, node: NodeProcess) -> None:
    address = deploy(node, "math")
    sent = send(node, address, "0x5b34b966")  # 0x5b34b966 is the selector of incrementCounter()
    page.go(f"#/address/{address}")
    page.reads("Contract", "Storage", "0x1")
    page.value(
        "new BroadcastChannel('ophion-abi').postMessage("
        + json.dumps({"name": "Math", "abi": data_of("math")["abi"], "address": address})
        + ")"
    )
    page.reads("Math", "Read")
    page.click("#main form button")
    page.go(f"#/tx/{sent}")
    page.reads("incrementCounter()", "Increased(uint256)", "slot 0")
    page.go("#/address/0x" + DEV_KEYS[0].address.hex())
    page.reads("incrementCounter", "deploys")


def test_bad_files_are_refused(page: Browser) -> None:
    for content in ("nothing", "{}", '[{"type":"function","name":"f","inputs":[{"type":"no"}]}]', '{"abi":[1]}'):
        page.value(
            "(() => { const files = new DataTransfer();"
            f"files.items.add(new File([{json.dumps(content)}], 'bad.json'));"
            "dispatchEvent(new DragEvent('drop', { dataTransfer: files, cancelable: true })); })()"
        )
        page.until("document.querySelector('.toast.shown.bad')?.textContent")
        page.value("document.querySelector('.toast').className = 'toast'")


# --- search and keys -----------------------------------------------------------------------------


def test_anything_is_found(page: Browser, node: NodeProcess) -> None:
    send(node, "0x" + "22" * 20)
    block = node.rpc("eth_getBlockByNumber", "0x1", False)
    wanted = {
        "1": "#/block/1", block["hash"]: f"#/block/{block['hash']}", "0x1": "#/block/1",
        block["transactions"][0]: f"#/tx/{block['transactions'][0]}", "latest": "#/block/latest",
        "0x" + "22" * 20: "#/address/0x" + "22" * 20, "eth_call": "#/playground/eth_call",
        "0x" + "33" * 32: "#/search/0x" + "33" * 32, "<b>x</b>": "#/search/%3Cb%3Ex%3C%2Fb%3E",
    }  # fmt: skip
    for text, target in wanted.items():
        page.press("Escape")
        page.value("document.activeElement.blur()")
        page.press("/")
        assert page.value("document.activeElement.id") == "wanted"
        page.type(text)
        page.press("Enter")
        page.until(f"location.hash === {json.dumps(target)} && document.activeElement.id === 'main'")
        page.until("!document.querySelector('.view[aria-busy]')")
    assert "<b>x</b>" in page.text("#main")


def test_the_page_can_be_used_without_a_mouse(page: Browser) -> None:
    page.press("Tab")
    assert page.value("document.activeElement.className") == "skip"
    for key, title in (("c", "Consensus"), ("p", "Playground"), ("e", "Blocks")):
        page.value("document.activeElement.blur()")
        page.press("g")
        page.press(key)
        page.reads(title)


# --- playground ----------------------------------------------------------------------------------


def test_every_method_has_a_form(page: Browser, node: NodeProcess) -> None:
    methods = node.rpc("rpc.discover")["methods"]
    for one in methods:
        page.go(f"#/playground/{one['name']}")
        fields = page.value("document.querySelectorAll('form.params > div > label, form.params > fieldset').length")
        assert fields == len(one["params"]), one["name"]


def test_a_method_is_called_and_shown_in_other_languages(page: Browser, node: NodeProcess) -> None:
    page.go("#/playground/eth_getBalance")
    account = "0x" + DEV_KEYS[0].address.hex()
    fill = (
        "(at, text) => { const one = document.querySelectorAll('.params input')[at]; one.value = text;"
        "one.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    page.value(f"({fill})(0, 'nonsense')")
    page.click(".params button[type=submit]")
    page.until("document.querySelector('.mistake:not([hidden])')?.textContent.includes('40 hexadecimal digits')")
    page.value(f"({fill})(0, '{account}')")
    page.value(f"({fill})(1, 'latest')")
    page.click(".params button[type=submit]")
    balance = node.rpc("eth_getBalance", account, "latest")
    page.until(f"document.getElementById('answer').textContent === '\"{balance}\"'")
    snippet = page.value("document.querySelector('[aria-label^=\"The call in\"]').textContent")
    if shutil.which("curl"):
        done = subprocess.run(["sh", "-c", snippet], capture_output=True, timeout=30, check=True)
        assert json.loads(done.stdout)["result"] == balance
    page.value("[...document.querySelectorAll('[role=tab]')].find(one => one.textContent === 'web3.py').click()")
    snippet = page.value("document.querySelector('[aria-label^=\"The call in\"]').textContent")
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, timeout=60, check=True)
    assert done.stdout.decode().strip() == balance
    page.value("[...document.querySelectorAll('[role=tab]')].find(one => one.textContent === 'ethers').click()")
    assert "provider.send(" in page.value("document.querySelector('[aria-label^=\"The call in\"]').textContent")


def test_graphql_is_part_of_the_playground(page: Browser) -> None:
    page.go("#/graphql")
    page.until("document.querySelectorAll('#schema dt').length > 5")
    page.click("#run")
    page.until("/^200 /.test(document.getElementById('status').textContent)")
    assert '"number"' in page.text("#answer")


# --- a token -------------------------------------------------------------------------------------


def test_a_node_with_tokens(browser: Browser, tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    hashed = subprocess.run(
        [sys.executable, "-m", "ophion", "password", "hash", "--password=open sesame"],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    users.write_text(f'[Users.ali]\npassword = "{hashed.stdout.decode().strip()}"\npermissions = ["*:*"]\n')
    options = ("--rpc-http-authentication-enabled", f"--rpc-http-authentication-credentials-file={users}")
    with NodeProcess(tmp_path / "data", *FREE, *options, command=("dev",)) as node:
        browser.look()
        browser.open(base(node), "!!document.querySelector('dialog[open]')")
        browser.value("document.querySelector('dialog input[name=username]').value = 'ali'")
        browser.value("document.querySelector('dialog input[name=password]').value = 'open sesame'")
        browser.click("dialog button.main")
        browser.until("document.getElementById('live').dataset.state === 'polling'")
        browser.reads("All is well")
        for view in VIEWS:
            browser.go(view)
            assert "This view failed" not in browser.text("#main"), view
        browser.go("#/graphql")
        browser.until("document.querySelectorAll('#schema dt').length > 5")
        assert "$TOKEN" in browser.text() or browser.go("#/playground") or "$TOKEN" in browser.reads("The same call")
        is_calm(browser, node)


# --- accessibility -------------------------------------------------------------------------------


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_contrast_and_labels(page: Browser, node: NodeProcess, is_dark: bool, width: int) -> None:
    source = axe_source()
    sent = send(node, "0x" + "22" * 20, value=1)
    page.look(width, 900, is_dark)
    # this setting lets the accessibility checker add its own elements to the page
    page.do("Page.setBypassCSP", enabled=True)
    try:
        page.open(base(node), "document.getElementById('live')?.dataset.state === 'live'")
        page.value(source + "; 1")
        for view in (*VIEWS, f"#/tx/{sent}", "#/block/1"):
            page.go(view)
            page.until("document.getElementById('main').innerText.length > 20")
            found = page.value(FOUND_BY_AXE)
            assert found == [], view
    finally:
        page.do("Page.setBypassCSP", enabled=False)


if os.environ.get("OPHION_PICTURES"):

    def test_pictures(page: Browser, node: NodeProcess) -> None:
        """Save screenshots for visual checks, if OPHION_PICTURES names a folder."""
        folder = Path(os.environ["OPHION_PICTURES"])
        folder.mkdir(parents=True, exist_ok=True)
        for name, width, is_dark in (("light", 1280, False), ("dark", 1280, True), ("narrow", 400, False)):
            page.look(width, 900, is_dark)
            for at, view in enumerate(VIEWS):
                page.go(view)
                page.picture(folder / f"{at:02}-{name}.png")
