"""All services of a node open together, and a browser gets a landing page."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from pathlib import Path

from ophion.testing.node_process import COMMAND, NodeProcess, environment
from ophion.testing.ports import free_ports

SERVICES = ("--rpc-http-enabled", "--rpc-ws-enabled", "--graphql-http-enabled", "--metrics-enabled")
PORTS = ("--rpc-http-port", "--rpc-ws-port", "--graphql-http-port", "--metrics-port")


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_who_reaches_one_interface_reaches_all(tmp_path: Path) -> None:
    ports = free_ports(4)
    options = [f"{option}={port}" for option, port in zip(PORTS, ports, strict=True)]
    node = subprocess.Popen(
        [*COMMAND, f"--data-path={tmp_path / 'data'}", "--network=dev", "--p2p-enabled=false", *SERVICES, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    try:
        deadline = time.monotonic() + 120
        while not answers(ports[0]):  # poll without a pause, to notice the moment when the port opens
            assert time.monotonic() < deadline
        assert [answers(port) for port in ports] == [True] * 4
    finally:
        node.kill()
        node.wait()


def test_every_interface_says_once_that_it_is_open_and_json_rpc_says_it_last(tmp_path: Path) -> None:
    page = ("--page-http-enabled", "--page-http-port=0", "--graphql-http-port=0", "--metrics-port=0", "--rpc-ws-port=0")
    with NodeProcess(tmp_path / "data", "--network=dev", "--p2p-enabled=false", *SERVICES[1:], *page) as node:
        opened = [line.split(" | ")[-1] for line in node.output().splitlines() if "started and listening" in line]
    assert len(opened) == len(SERVICES) + 1
    assert opened[-1].startswith("JsonRPC service")
    assert sum(line.startswith("Page service") for line in opened) == 1


def get(port: int, **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/", headers=headers)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type", ""), response.read().decode()
    finally:
        connection.close()


def test_a_browser_gets_a_page_and_a_probe_gets_what_it_always_got(tmp_path: Path) -> None:
    options = ("--network=dev", "--graphql-http-enabled", "--graphql-http-port=0", "--p2p-enabled=false")
    with NodeProcess(tmp_path / "data", *options) as node:
        port = node.ports["json-rpc"]
        assert get(port) == get(port, Accept="*/*") == (201, "", "")
        status, kind, text = get(port, Accept="text/html,application/xhtml+xml,*/*;q=0.8")
        assert (status, kind) == (200, "text/html; charset=utf-8")
        assert f"http://127.0.0.1:{node.ports['graphql-http']}/graphql" in text
