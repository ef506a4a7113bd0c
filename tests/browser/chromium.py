"""Controls headless Chromium through its debugging protocol.

The protocol is JSON over WebSocket, for which the tests already have a client. A browser library would install its own
browser.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import processor_s

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_CHROMIUM = "there is no Chromium here (Debian package chromium)"
LIMIT_S = 60.0

_OPTIONS = (
    "--headless=new", "--disable-ipc-flooding-protection",
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
    # make other hosts unreachable, because the web page must work without them
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


class Browser:
    """One tab of a browser."""

    def __init__(self, socket: Any, process: subprocess.Popen[bytes]) -> None:
        self._socket = socket
        self._next = 0
        self.process = process
        self.asked: list[str] = []
        """URLs of all requests of the page."""
        self.complaints: list[str] = []
        """Errors and warnings of scripts, of the network and of the security policy."""
        for domain in ("Page", "Runtime", "Network", "Log", "Performance"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command of the protocol, and record events that arrive meanwhile."""
        self._next += 1
        self._socket.send(json.dumps({"id": self._next, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(LIMIT_S))
            self._note(message)
            if message.get("id") == self._next:
                assert "error" not in message, message
                found: dict[str, Any] = message["result"]
                return found

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.asked.append(params["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    # --- observing -------------------------------------------------------------------------------

    def value(self, expression: str) -> Any:
        """Evaluate an expression. Promises are awaited."""
        response = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in response, response["exceptionDetails"]
        return response["result"].get("value")

    def until(self, expression: str, limit_s: float = LIMIT_S) -> Any:
        """Wait until an expression is true, and return its value."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            found = self.value(expression)
            if found:
                return found
            time.sleep(0.03)
        raise AssertionError(f"never came true: {expression}; {self.complaints}\n{self.text()[:3000]}")

    def text(self, selector: str = "body") -> str:
        """Return the visible text of an element."""
        found: str = self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return found

    def reads(self, *words: str) -> str:
        """Wait until all these words are visible in the main part of the page."""
        wanted = " && ".join(f"t.includes({json.dumps(word)})" for word in words)
        self.until(f"(t => {wanted})(document.getElementById('main').innerText)")
        return self.text("#main")

    def picture(self, path: Path, whole: bool = True) -> None:
        """Save a screenshot."""
        response = self.do("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(response["data"]))

    def metrics(self) -> dict[str, float]:
        """Return counters of the tab: TaskDuration, JSHeapUsedSize, Nodes and others."""
        return {one["name"]: one["value"] for one in self.do("Performance.getMetrics")["metrics"]}

    def cost(self) -> tuple[float, int]:
        """Return CPU seconds and memory bytes of the process that runs the page (Linux).

        Chromium has several renderer processes, but only one runs the page. So the seconds are the sum over all
        renderers, and the bytes are the memory of the largest.
        """
        parents = {int(path.name): _parent(path) for path in Path("/proc").glob("[0-9]*")}
        found = [(0.0, 0)]
        for pid in parents:
            line = pid
            while line in parents and line != self.process.pid:
                line = parents[line]
            with suppress(OSError):  # the process may have ended in the meantime
                if line == self.process.pid and b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    memory = Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0]
                    found.append((processor_s(pid), int(memory) * 1024))
        return sum(seconds for seconds, _ in found), max(held for _, held in found)

    # --- acting ----------------------------------------------------------------------------------

    def open(self, address: str, until: str = "document.readyState === 'complete'") -> None:
        """Open an address in a fresh page."""
        self.do("Page.navigate", url="about:blank")
        self.asked.clear()
        self.complaints.clear()
        self.do("Page.navigate", url=address)
        self.until(f"location.href !== 'about:blank' && {until}")

    def go(self, view: str) -> None:
        """Go to another view of the open page."""
        # wait until the page has handled the new value
        self.value(
            "new Promise((resolve) => { const before = location.href; addEventListener('hashchange', () => resolve(1),"
            f" {{ once: true }}); location.hash = {json.dumps(view)}; if (location.href === before) resolve(1); }})"
        )
        self.until("!document.querySelector('.view[aria-busy]')")

    def click(self, selector: str) -> None:
        self.until(f"!!document.querySelector({json.dumps(selector)})")
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key: str, text: str = "", modifiers: int = 0) -> None:
        """Press one key. The value 2 of `modifiers` is Ctrl."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27}
        number = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
        written = {"text": text or (key if len(key) == 1 else "\r" if key == "Enter" else "")}
        event = {"key": key, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        self.do("Input.dispatchKeyEvent", type="keyDown", **event, **(written if written["text"] else {}))
        self.do("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Type text at the cursor."""
        self.do("Input.insertText", text=text)

    def look(self, width: int = 1280, height: int = 900, is_dark: bool = False) -> None:
        """Set the window size, and light or dark mode."""
        self.do(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = "dark" if is_dark else "light"
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


def _parent(path: Path) -> int:
    """Return the parent process id; 0 if the process has ended."""
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser with one tab and stop it at the end. Skips the test if the browser cannot be started."""
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    client = pytest.importorskip("websockets.sync.client")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            address = _debugger(Path(profile) / "DevToolsActivePort", process)
            # read all events even while no test waits, because a full queue would block the browser and its pongs
            with client.connect(
                address, max_size=None, max_queue=None, ping_interval=None, open_timeout=LIMIT_S
            ) as socket:
                yield Browser(socket, process)
        finally:
            process.kill()
            process.wait(60)


def _debugger(file: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the debugger address of the first tab."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        lines = file.read_text().split() if file.exists() else []
        if lines:
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list", timeout=LIMIT_S) as response:
                tabs = [tab for tab in json.load(response) if tab["type"] == "page"]
            if tabs:
                address: str = tabs[0]["webSocketDebuggerUrl"]
                return address
        time.sleep(0.05)
    pytest.skip("Chromium does not start here")
