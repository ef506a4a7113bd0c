"""Runs the conformance suites of go-ethereum's `devp2p` tool against a running node (`make interop`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ophion.testing.node_process import NodeProcess
from tests.integration.command import ophion
from tests.interop.devp2p import passed, run, suite_data, tool

LOCAL = (
    "--p2p-enabled",
    "--p2p-host=127.0.0.1",
    "--p2p-interface=127.0.0.1",
    "--p2p-port=0",
    "--bootnodes",
    "--rpc-http-api=ETH,NET",
    # the test suites send transactions with a gas price of 1
    "--min-gas-price=0",
)

DISCOVERY = {
    "Ping/Basic",
    "Ping/WrongTo",
    "Ping/WrongFrom",
    "Ping/ExtraData",
    "Ping/ExtraDataWrongFrom",
    "Ping/PastExpiration",
    "Ping/WrongPacketType",
    "Ping/BondThenPingWithWrongFrom",
    "Findnode/WithoutEndpointProof",
    "Findnode/BasicFindnode",
    "Findnode/UnsolicitedNeighbors",
    "Findnode/PastExpiration",
    "Amplification/InvalidPongHash",
    "Amplification/WrongIP",
}

BEFORE_MERGE = {
    "TestStatus",
    "TestGetBlockHeaders",
    "TestSimultaneousRequests",
    "TestSameRequestID",
    "TestZeroRequestID",
    "TestGetBlockBodies",
    "TestBroadcast",
    "TestLargeAnnounce",
    "TestOldAnnounce",
    "TestBlockHashAnnounce",
    "TestMaliciousHandshake",
    "TestMaliciousStatus",
    "TestTransaction",
    "TestMaliciousTx",
    "TestLargeTxRequest",
    "TestNewPooledTxs",
}

AFTER_MERGE = {
    "Status",
    "GetBlockHeaders",
    "SimultaneousRequests",
    "SameRequestID",
    "ZeroRequestID",
    "GetBlockBodies",
    "MaliciousHandshake",
    "MaliciousStatus",
    "Transaction",
    "InvalidTxs",
    "LargeTxRequest",
    "NewPooledTxs",
    "BlobViolations",
}


def test_others_read_our_hello(tmp_path: Path) -> None:
    program = tool("DEVP2P", "1.13.15")
    with NodeProcess(tmp_path / "data", "--network=dev", *LOCAL) as node:
        output = run(program, "rlpx", "ping", node.rpc("net_enode"))
        assert "ophion/" in output
        assert "eth 68" in output.replace("/", " ")
        assert node.stop() == 0
        assert "Traceback" not in node.output()


def test_discovery(tmp_path: Path) -> None:
    program = tool("DEVP2P", "1.13.15")
    with NodeProcess(tmp_path / "data", "--network=dev", *LOCAL) as node:
        where = node.rpc("net_enode")
        listening = ("--listen1", "127.0.0.1", "--listen2", "127.0.0.2")
        assert passed(run(program, "discv4", "test", "--tap", "--remote", where, *listening)) >= DISCOVERY
        assert "enr:" in run(program, "discv4", "requestenr", where)
        assert node.stop() == 0
        assert "Traceback" not in node.output()


def test_eth_before_the_merge(tmp_path: Path) -> None:
    """This suite extends the chain, so it includes block announcements."""
    program = tool("DEVP2P_1135", "1.13.5")
    data = suite_data("1.13.5", tmp_path / "suite")
    options = (f"--genesis-file={data / 'genesis.json'}", "--network-id=19763")
    load(tmp_path / "data", options[0], f"--from={data / 'halfchain.rlp'}")
    with NodeProcess(tmp_path / "data", *options, *LOCAL) as node:
        arguments = (node.rpc("net_enode"), data / "chain.rlp", data / "genesis.json")
        assert passed(run(program, "rlpx", "eth-test", "--tap", *arguments)) >= BEFORE_MERGE
        assert node.stop() == 0
        assert "Traceback" not in node.output()


def test_eth_after_the_merge(tmp_path: Path) -> None:
    program = tool("DEVP2P", "1.13.15")
    data = suite_data("1.13.15", tmp_path / "suite")
    options = (f"--genesis-file={data / 'genesis.json'}", "--network-id=3503995874084926")
    load(tmp_path / "data", options[0], "--skip-pow-validation-enabled", f"--from={data / 'chain.rlp'}")
    with NodeProcess(tmp_path / "data", *options, *LOCAL) as node, engine() as url:
        where = ("--node", node.rpc("net_enode"), "--engineapi", url, "--jwtsecret", "0x" + "11" * 32)
        chosen = ("--run", f"^({'|'.join(sorted(AFTER_MERGE))})$")
        assert passed(run(program, "rlpx", "eth-test", "--tap", *chosen, "--chain", data, *where)) == AFTER_MERGE
        assert node.stop() == 0
        assert "Traceback" not in node.output()


def load(data_path: Path, *arguments: str) -> None:
    """Import the chain of a conformance suite into a node."""
    ophion(f"--data-path={data_path}", *arguments[:1], "blocks", "import", *arguments[1:]).succeeded()


class _Anything(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        # the handler ignores the chunked request, because its content does not matter
        body = b'{"jsonrpc":"2.0","id":1,"result":{"payloadStatus":{"status":"VALID"}}}'
        self.send_response(200)
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def engine() -> Iterator[str]:
    """Serve a replacement for the Engine API. The suite sends one message to this API, and accepts any answer."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Anything) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
