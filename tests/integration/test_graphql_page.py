"""The query page in a real browser: headless Chromium, told over its debugging protocol what a person would do."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.process import MINING, NodeProcess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
client = pytest.importorskip("websockets.sync.client")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian package chromium)")

_START_LIMIT_S = 30.0


class Browser:
    """One tab."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._next = 0
        self.asked: list[str] = []
        """Addresses of everything that the page has asked for."""
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        self._socket.send(json.dumps({"id": self._next, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(_START_LIMIT_S))
            self._note(message)
            if message.get("id") == self._next:
                assert "error" not in message, message
                found: dict[str, Any] = message["result"]
                return found

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"]["text"])
        elif message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])

    def value(self, expression: str) -> Any:
        return self.do("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def until(self, expression: str) -> Any:
        deadline = time.monotonic() + _START_LIMIT_S
        while time.monotonic() < deadline:
            found = self.value(expression)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"never came true: {expression}; {self.complaints}")

    def open(self, address: str) -> None:
        self.do("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && !!document.getElementById('run')")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    options = (*MINING, "--graphql-http-enabled", "--graphql-http-port=0")
    with NodeProcess(tmp_path_factory.mktemp("page") / "data", *options) as process:
        yield process


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                # nothing but this machine can be reached: the page must work without any other
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            address = _debugger(Path(profile) / "DevToolsActivePort", process)
            with client.connect(address, max_size=None, open_timeout=_START_LIMIT_S) as socket:
                yield Browser(socket)
        finally:
            process.kill()
            process.wait(10)


def _debugger(file: Path, process: subprocess.Popen[bytes]) -> str:
    """Address of the first tab's debugger."""
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        lines = file.read_text().split() if file.exists() else []
        if lines:
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list") as response:
                tabs = [tab for tab in json.load(response) if tab["type"] == "page"]
            if tabs:
                address: str = tabs[0]["webSocketDebuggerUrl"]
                return address
        time.sleep(0.05)
    pytest.skip("Chromium does not start here")


@pytest.fixture
def page(node: NodeProcess, browser: Browser) -> Browser:
    browser.asked.clear()
    browser.complaints.clear()
    browser.open(f"http://127.0.0.1:{node.ports['graphql-http']}/graphql")
    browser.value("localStorage.clear()")
    browser.until("document.querySelectorAll('#schema dt').length > 5")
    return browser


def run(page: Browser, document: str, variables: str = "") -> dict[str, Any]:
    page.value(f"document.getElementById('query').value = {json.dumps(document)}")
    page.value(f"document.getElementById('variables').value = {json.dumps(variables)}")
    page.value("document.getElementById('status').textContent = ''; document.getElementById('run').click()")
    page.until("/ms/.test(document.getElementById('status').textContent)")
    answer: dict[str, Any] = json.loads(page.value("document.getElementById('answer').textContent"))
    return answer


def test_a_person_runs_a_query(page: Browser, node: NodeProcess) -> None:
    answer = run(page, "query($n:Long){block(number:$n){number hash}}", '{"n":0}')
    assert answer["data"]["block"] == {"number": 0, "hash": node.rpc("eth_getBlockByNumber", "0x0", False)["hash"]}
    assert page.value("document.getElementById('status').textContent").startswith("200 ")
    assert page.complaints == []


def test_mistakes_are_shown(page: Browser) -> None:
    assert run(page, "{nothing}")["errors"][0]["message"].startswith("Validation error of type FieldUndefined")
    assert page.value("document.getElementById('status').textContent").startswith("400 ")


def test_the_schema_can_be_explored(page: Browser) -> None:
    page.value("[...document.querySelectorAll('#schema a')].find(one => one.textContent === 'Query').click()")
    assert "Blocks in ascending order" in page.until("document.getElementById('schema').textContent")
    page.value("[...document.querySelectorAll('#schema a')].find(one => one.textContent === 'Block!').click()")
    assert page.until("document.getElementById('schema').textContent.includes('logsBloom')")
    page.value(
        "document.getElementById('search').value = 'createdcontract';"
        "document.getElementById('search').dispatchEvent(new Event('input'))"
    )
    assert page.until("document.getElementById('schema').textContent.includes('Transaction.createdContract')")


def test_fields_are_offered_while_typing(page: Browser) -> None:
    page.value("document.getElementById('query').focus(); document.getElementById('query').value = ''")
    page.do("Input.insertText", text="{block{transactions{effec")
    assert page.until("document.getElementById('hints').textContent") == "effectiveTipeffectiveGasPrice"
    page.do("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13)
    assert page.value("document.getElementById('query').value") == "{block{transactions{effectiveTip"


def test_a_document_is_tidied_without_changing_its_meaning(page: Browser) -> None:
    document = 'query A($n:Long=5){block(number:$n){number,logs(filter:{topics:[["0x1"]]}){index}}}'
    page.value(f"document.getElementById('query').value = {json.dumps(document)}")
    page.value("document.getElementById('tidy').click()")
    tidied = page.value("document.getElementById('query').value")
    assert tidied.count("\n") > 4
    assert run(page, tidied, '{"n":0}') == {"data": {"block": {"number": 0, "logs": []}}}


def test_nothing_is_asked_of_any_other_host(page: Browser, node: NodeProcess) -> None:
    run(page, "{block{number}}")
    own = f"http://127.0.0.1:{node.ports['graphql-http']}/"
    assert [address for address in page.asked if not address.startswith((own, "data:"))] == []
