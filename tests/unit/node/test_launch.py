"""Tests the modules that a node imports before it runs."""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from pathlib import Path

import pytest

from ophion.testing.node_process import NodeProcess
from tests.unit.rpc.tls.test_certificates import identity, pem_file

TELLING = (
    sys.executable,
    "-c",
    "import atexit, runpy, sys\n"
    "atexit.register(lambda: print('at the end:', sorted({'_ssl', '_hashlib', 'tempfile'} & set(sys.modules))))\n"
    "runpy.run_module('ophion', None, '__main__')",
)
PORTS = ("--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-port=0")


def last_words(node: NodeProcess) -> str:
    return next(line for line in node.output().splitlines() if line.startswith("at the end"))


def test_a_node_that_does_not_speak_tls_has_no_openssl(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *PORTS, command=("dev",), launcher=TELLING) as node:
        assert node.rpc("eth_blockNumber") == "0x0"
        assert node.stop() == 0
    assert last_words(node) == "at the end: []"


@pytest.mark.parametrize("protocol", ["TLSv1_2", "TLSv1_3"])
def test_one_that_does_speaks_it(tmp_path: Path, protocol: str) -> None:
    store = pem_file(tmp_path / "server.pem", *identity("localhost"))
    tls = ("--rpc-http-tls-enabled", f"--rpc-http-tls-keystore-file={store}", "--network=dev")
    context = ssl.create_default_context(cafile=str(store))
    context.maximum_version = ssl.TLSVersion[protocol]
    with NodeProcess(tmp_path / "data", *tls, "--p2p-enabled=false", launcher=TELLING) as node:
        connection = http.client.HTTPSConnection("localhost", node.ports["json-rpc"], timeout=20, context=context)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []})
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        assert json.loads(connection.getresponse().read())["result"] == "0x0"
        connection.close()
        assert node.stop() == 0
    assert "_ssl" in last_words(node)
