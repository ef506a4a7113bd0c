"""Tests the metrics port."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ophion.metrics.options import MetricsConfig
from ophion.metrics.server import metrics_service
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import MetricsRegistry
from tests.unit.rpc.endpoints.test_services import exchange, serving


def registry() -> MetricsRegistry:
    made = MetricsRegistry()
    made.gauge(Category.ETHEREUM, "peer_count", "Peers.").watch(lambda: 3)
    made.gauge(Category.ETHEREUM, "peer_limit", "Most peers.").watch(lambda: 25)
    made.counter(Category.RPC, "errors_total", "Errors.").add(2)
    return made


def ask(line: str, host: str = "localhost", hosts: tuple[str, ...] = ("localhost",), **config: Any) -> bytes:
    async def main() -> bytes:
        service = metrics_service(registry(), MetricsConfig(port=0, **config), hosts)
        answer = b""

        async def story() -> None:
            nonlocal answer
            request = f"{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            answer = await exchange(service.port, request.encode())

        await serving(service, story)
        return answer

    return asyncio.run(main())


def test_everything_is_shown_in_the_text_format() -> None:
    head, _, body = ask("GET /metrics").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert b"ethereum_peer_count 3\n" in body
    assert b"besu_rpc_errors_total 2\n" in body
    assert body.endswith(b"\n")


def test_families_are_chosen_by_name() -> None:
    body = ask("GET /metrics?name[]=ethereum_peer_limit&name%5B%5D=besu_rpc_errors_total").partition(b"\r\n\r\n")[2]
    shown = [line.split()[0] for line in body.splitlines() if not line.startswith(b"#")]
    assert shown == [b"ethereum_peer_limit", b"besu_rpc_errors_total"]


def test_categories_are_chosen_by_option() -> None:
    body = ask("GET /metrics", categories=(Category.RPC,)).partition(b"\r\n\r\n")[2]
    assert b"ethereum" not in body
    assert b"ophion_rpc_errors_total 2" in body


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /", 201),
        ("GET /other", 404),
        ("POST /metrics", 405),
        ("HEAD /metrics", 405),
        ("GET /metrics?" + "name[]=a&" * 5000, 400),
    ],
)
def test_other_requests(line: str, status: int) -> None:
    assert int(ask(line).split()[1]) == status


def test_the_host_list_is_asked_and_answers_in_text() -> None:
    answer = ask("GET /metrics", host="attacker.example")
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"Content-Type: text/plain" in answer
    assert answer.endswith(b"\r\n\r\nHost not authorized.")
    assert ask("GET /metrics", host="prometheus", hosts=("*",)).startswith(b"HTTP/1.1 200")
