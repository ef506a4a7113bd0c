"""The report is split into paragraphs."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ophion.gateway.backends import BackendNetwork, ServiceAddress
from ophion.quickstart.plan import Consensus, NetworkPlan
from ophion.quickstart.report import addresses, begins, enclaves, is_up, paragraphs


def test_one_empty_line_between_paragraphs_and_none_for_those_that_have_nothing_to_say() -> None:
    members = {"member1": "abc="}
    assert list(paragraphs(["one", "two"], enclaves({}), ["three"])) == ["one", "two", "", "three"]
    assert list(paragraphs(["one"], enclaves(members)))[1:] == ["", *enclaves(members)]


def test_an_installed_tool_that_is_not_running_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "prometheus"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        site = BackendNetwork("net", "qbft", (), {"prometheus": ServiceAddress("127.0.0.1", listener.getsockname()[1])})
        *_, prometheus, grafana = addresses("127.0.0.1:8080", site, tmp_path)
        assert prometheus.endswith(" : http://127.0.0.1:8080/prometheus/graph")
        assert " : not installed; " in grafana
    *_, prometheus, grafana = addresses("127.0.0.1:8080", site, tmp_path)
    assert " : not started; `ophion quickstart up --print-commands` shows how" in prometheus
    *_, prometheus, grafana = addresses("127.0.0.1:8080", site, tmp_path, " --directory=other")
    assert " : not started; `ophion quickstart up --print-commands --directory=other` shows how" in prometheus
    os.remove(program)
    *_, prometheus, grafana = addresses("127.0.0.1:8080", site, tmp_path)
    assert " : not installed; " in prometheus


@pytest.mark.parametrize(
    ("period", "before", "after"),
    [(2, "blocks every 2 s", "has a new block"), (0, "a block for each transaction", "answers")],
)
def test_what_is_waited_for_is_what_comes(period: int, before: str, after: str) -> None:
    plan = NetworkPlan(Consensus.DEV, 1, period, None, False, False)
    assert before in begins(plan)
    assert f"Every node {after} after 1.5 s." in is_up(plan, 1.52)
