"""Tests ports in use, or shared by two services of a node."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.node.port_check import PortsTaken, check_ports
from ophion.testing.node_process import COMMAND, NodeProcess, environment
from tests.unit.node.command_line import loaded

FLAGS = {
    "JsonRPC service": ("--rpc-http-enabled", "--rpc-http-port"),
    "Websocket service": ("--rpc-ws-enabled", "--rpc-ws-port"),
    "GraphQL service": ("--graphql-http-enabled", "--graphql-http-port"),
    "Metrics service": ("--metrics-enabled", "--metrics-port"),
    "Page service": ("--page-http-enabled", "--page-http-port"),
    "Enclave service": ("--privacy-enabled", "--privacy-enclave-http-port"),
    "Enclave peers": ("--privacy-enabled", "--privacy-enclave-port"),
}


def problems(*tokens: str) -> list[str]:
    try:
        check_ports(loaded(*tokens).config)
    except PortsTaken as error:
        return str(error).splitlines()
    return []


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("service", FLAGS)
def test_a_port_in_use_is_named_with_its_option(service: str, taken: int) -> None:
    switch, flag = FLAGS[service]
    alone = ("--p2p-enabled=false", "--privacy-enclave-host=127.0.0.1", switch)
    assert problems(*alone, f"{flag}={taken}") == [
        f"{service} cannot listen on 127.0.0.1:{taken}: Address already in use. Another program has this port: choose"
        f" another one with {flag}, or 0 for any that is free."
    ]
    assert problems(*alone, f"{flag}=0") == []


def test_the_peer_port_in_use_on_one_address_is_found(taken: int) -> None:
    found = problems(f"--p2p-port={taken}")
    assert [line.partition(":")[0] for line in found] == ["P2P service cannot listen on 0.0.0.0"]
    assert "--p2p-port" in found[0]


def test_all_of_them_are_named_at_once(taken: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        other = server.getsockname()[1]
        found = problems(
            "--p2p-enabled=false",
            "--rpc-http-enabled",
            f"--rpc-http-port={taken}",
            "--rpc-ws-enabled",
            f"--rpc-ws-port={other}",
        )
    assert [re.findall(r"--[a-z-]+", line) for line in found] == [["--rpc-http-port"], ["--rpc-ws-port"]]


def test_two_services_of_one_node_cannot_have_the_same() -> None:
    alike = ("--p2p-enabled=false", "--rpc-http-enabled", "--rpc-http-port=18546", "--rpc-ws-enabled")
    assert problems(*alike, "--rpc-ws-port=18546") == [
        "Websocket service cannot listen on 127.0.0.1:18546: the JsonRPC service of this node does. Choose another port"
        " with --rpc-http-port or --rpc-ws-port, or 0 for any that is free."
    ]
    assert problems(*alike, "--rpc-ws-port=18546", "--rpc-ws-host=127.0.0.2") == []


def test_what_is_off_is_not_asked_for(taken: int) -> None:
    assert problems("--p2p-enabled=false", f"--rpc-http-port={taken}", f"--metrics-port={taken}") == []
    assert problems("--p2p-enabled=false", "--page-http-enabled") == [], "the page looks for another one by itself"


def test_other_address_problems_are_reported_by_the_service() -> None:
    for host in ("192.0.2.1", "no.such.name.invalid", "::1", "ü.invalid"):
        assert problems("--p2p-enabled=false", "--rpc-http-enabled", f"--rpc-http-host={host}") == []


def development_node(*options: str) -> subprocess.CompletedProcess[str]:
    """Run a node that refuses to start, until the process has ended."""
    command = [*COMMAND, "dev", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment())


def test_a_second_development_node_says_all_that_must_be_chosen_and_makes_nothing(tmp_path: Path) -> None:
    free_ports = ("--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-port=0")
    with NodeProcess(tmp_path / "first", *free_ports, command=("dev",)) as node:
        ports = [node.ports[name] for name in ("json-rpc", "ws-rpc", "graphql-http")]
        http, websocket, graphql = ports
        same = (f"--rpc-http-port={http}", f"--rpc-ws-port={websocket}", f"--graphql-http-port={graphql}")
        second = development_node(*same, f"--data-path={tmp_path / 'second'}")
        assert second.returncode == 1
        lines = second.stderr.splitlines()
        assert [str(port) in line for port, line in zip(ports, lines, strict=True)] == [True] * 3
        assert [re.findall(r"--[a-z-]+", line)[0] for line in lines] == [
            "--rpc-http-port",
            "--rpc-ws-port",
            "--graphql-http-port",
        ]
        assert not (tmp_path / "second").exists()
        assert node.stop(signal.SIGTERM) == 0


def test_where_the_ports_are_those_of_a_node_with_the_same_data_the_data_is_named(tmp_path: Path) -> None:
    free_ports = ("--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-port=0")
    with NodeProcess(tmp_path / "data", *free_ports, command=("dev",)) as node:
        port = f"--rpc-http-port={node.ports['json-rpc']}"
        second = development_node(port, *free_ports, f"--data-path={tmp_path / 'data'}")
        assert second.returncode == 1
        assert second.stderr == (
            f"The data path {tmp_path / 'data'} is in use by process {node.pid}. Stop that process or choose another"
            " --data-path.\n"
        )
