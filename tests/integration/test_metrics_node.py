"""Tests that metrics of a real node can be read, and that the node pushes them."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.request
from pathlib import Path

from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction


def values(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_prometheus_sees_blocks_transactions_and_requests(tmp_path: Path) -> None:
    options = ("--metrics-enabled", "--metrics-port=0", "--rpc-http-api=ETH,NET,DEBUG", "--logging-format=json")
    with NodeProcess(tmp_path / "data", *MINING, *options) as node:
        node.receipt(node.send(legacy_transaction(DEV_KEYS[0], 0)))
        shown = values(node.ports["metrics"])
        assert shown["ethereum_blockchain_height"] == 1
        assert shown["besu_blockchain_chain_head_transaction_count"] == 1
        assert shown['ophion_transaction_pool_transactions_removed_total{source="local",operation="addedToBlock"}'] == 1
        assert shown['ophion_rpc_request_time_count{methodName="eth_sendRawTransaction"}'] == 1
        assert shown['ophion_rpc_active_connections{service="jsonrpc"}'] == 1
        tree = node.rpc("debug_metrics")
        assert tree["rpc"]["request_time"]["eth_sendRawTransaction"]["count"] == 1
        assert tree["blockchain"]["height"] == 1
        assert node.rpc("net_services")["metrics"]["port"] == str(node.ports["metrics"])
        assert node.stop() == 0
    lines = [json.loads(line) for line in node.output().splitlines()]
    assert {"time", "thread", "level", "source", "message"} <= lines[0].keys()


def test_a_node_without_metrics_listens_on_no_further_port(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--network=dev", "--rpc-http-api=DEBUG,ETH") as node:
        assert "metrics" not in node.ports
        assert "request_time" not in node.rpc("debug_metrics").get("rpc", {})


def test_metrics_are_pushed_and_deleted_at_stop(tmp_path: Path) -> None:
    received: list[tuple[str, str, bytes]] = []
    pushed = threading.Event()

    class Gateway(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.command, self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            pushed.set()

        do_DELETE = do_POST  # noqa: N815  # http.server expects this name

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = (
            "--network=dev",
            "--metrics-push-enabled",
            f"--metrics-push-port={server.server_address[1]}",
            "--metrics-push-interval=1",
        )
        with NodeProcess(tmp_path / "data", *options) as node:
            assert pushed.wait(60)
            assert node.stop() == 0
        server.shutdown()
    assert received[0][:2] == ("POST", "/metrics/job/ophion-client")
    assert b"ethereum_blockchain_height 0\n" in received[0][2]
    assert received[-1] == ("DELETE", "/metrics/job/ophion-client", b"")
