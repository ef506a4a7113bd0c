"""Runs geth for comparisons (variable GETH).

`geth --dev` makes a block for each transaction, like `ophion dev`. A node at the genesis block of a given network makes
no blocks.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from ophion.testing.ports import free_ports

GETH = os.environ.get("GETH", "")
IS_THERE = shutil.which(GETH) is not None
CHAIN_ID = 1337


@cache
def has_prague() -> bool:
    """Return whether the development network of this geth has transaction types 3 and 4, which 1.15 introduced."""
    version_text = subprocess.run([GETH, "version"], check=True, capture_output=True, text=True, timeout=60).stdout
    version = re.search(r"^Version: (\d+)\.(\d+)", version_text, re.MULTILINE)
    assert version is not None, version_text
    return (int(version[1]), int(version[2])) >= (1, 15)


class GethDev:
    """A running geth in its own directory. On the development network, the given accounts have 100 ether each."""

    def __init__(self, path: Path, *rich: str, genesis: str | None = None) -> None:
        self._genesis = genesis
        self._path = path
        self._rich = rich
        self._http, self._ws, self._auth = free_ports(3)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self._http}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self._ws}"

    def __enter__(self) -> GethDev:
        self._path.mkdir(parents=True)
        options = {
            "--datadir": self._path,
            "--http.port": self._http,
            "--ws.port": self._ws,
            "--authrpc.port": self._auth,
            "--http.api": "eth,net,web3,debug",
            "--verbosity": 1,
        }
        flags = [word for pair in options.items() for word in map(str, pair)]
        switches = ["--http", "--ws", "--nodiscover", "--ipcdisable", "--port=0", "--nat=none"]
        if self._genesis is None:
            switches.append("--dev")
        else:
            (self._path / "genesis.json").write_text(self._genesis)
            made = [GETH, "--datadir", str(self._path), "init", str(self._path / "genesis.json")]
            subprocess.run(made, check=True, capture_output=True, timeout=60)
        with (self._path / "log").open("wb") as log:
            self._process = subprocess.Popen([GETH, *flags, *switches], stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while True:
            try:
                accounts = self.rpc("eth_accounts")
                break
            except OSError:
                assert time.monotonic() < deadline, (self._path / "log").read_text()
                time.sleep(0.1)
        for account in self._rich:
            sent = self.rpc("eth_sendTransaction", {"from": accounts[0], "to": account, "value": hex(10**20)})
            while not self.request("eth_getTransactionReceipt", sent).get("result"):
                # geth returns no receipt while it builds its index
                assert time.monotonic() < deadline, "no block"
                time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    def request(self, method: str, *params: Any) -> Any:
        """Send a request; return the whole answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._http, timeout=20)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())

    def rpc(self, method: str, *params: Any) -> Any:
        """Send a request that must succeed; return its result."""
        answer = self.request(method, *params)
        assert "result" in answer, answer
        return answer["result"]
