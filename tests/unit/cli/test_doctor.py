"""Tests `ophion doctor`: findings from the answers of nodes, including hostile nodes."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ophion.cli.consensus_status import ReportedConsensus, read_consensus_status
from ophion.cli.doctor import CheckedNode, examine, verdict
from ophion.cli.main import main

METHODS = ("web3_clientVersion", "eth_getBlockByNumber", "net_peerCount", "eth_syncing", "qbft_getStatus")
NAMES = (
    *("result", "error", "message", "data", "number", "hash", "timestamp", "phase", "quorum", "validators"),
    *("disconnected", "explanation", "members", "address", "clockAheadSeconds", "isPassedOver"),
)
A, B, C, D = (f"0x{byte * 20}" for byte in ("aa", "bb", "cc", "dd"))


def status(disconnected: list[str], **members: Any) -> ReportedConsensus:
    answer = {
        "phase": "waiting for round changes",
        "validators": [A, B, C, D],
        "quorum": 3,
        "disconnected": disconnected,
        "explanation": ["Waiting for 1 more request for round 3."],
        "members": [{"address": B, "clockAheadSeconds": None, "isPassedOver": False, **members}],
    }
    read = read_consensus_status(answer)
    assert read is not None
    return read


def node(**changes: Any) -> CheckedNode:
    healthy = CheckedNode("http://a", "ophion", 7, "0x07", 1.0, 3, status=status([]), new_blocks=1)
    return dataclasses.replace(healthy, **changes)


def test_a_network_that_makes_blocks_is_well() -> None:
    assert verdict([node(), node(url="http://b")]) == (True, ["The network is producing blocks."])


def test_no_node_answers() -> None:
    is_well, lines = verdict([CheckedNode("http://a", problem="Connection refused")])
    assert not is_well
    assert lines[0] == "http://a does not answer: Connection refused"
    assert "Start the nodes" in lines[1]


def test_too_few_validators_are_named() -> None:
    is_well, lines = verdict([node(new_blocks=0, age_s=90.0, status=status([C, D]))])
    assert not is_well
    assert "No new block arrived; the latest is number 7, 90 s old." in lines
    assert f"3 of 4 validators are needed and 2 can be reached. Start or connect at least 1 of: {C}, {D}." in lines


def test_a_validator_that_one_of_them_reaches_is_not_missing() -> None:
    pair = [node(new_blocks=0, status=status([C, D])), node(new_blocks=0, status=status([D]))]
    assert any("Enough validators" in line for line in verdict(pair)[1])


def test_wrong_clocks_silent_validators_forks_and_syncing_are_reported() -> None:
    lines = verdict([node(status=status([], clockAheadSeconds=5.2))])[1]
    assert f"The clock of validator {B} is about 5 s ahead of others: set it right." in lines
    lines = verdict([node(status=status([], isPassedOver=True))])[1]
    assert f"Validator {B} is offline and skipped until it sends messages again." in lines
    is_well, lines = verdict([node(), node(head="0x70")])
    assert not is_well
    assert any("different blocks 7" in line for line in lines)
    assert any("synchronising" in line for line in verdict([node(is_syncing=True)])[1])
    assert any("no peers" in line for line in verdict([node(peers=0), node()])[1])
    assert any("API group" in line for line in verdict([node(status=None, new_blocks=0)])[1])
    assert "No new block arrived; there is none yet." in verdict([node(height=0, age_s=1.8e9, new_blocks=0)])[1]


def test_a_node_that_is_not_there_has_a_problem() -> None:
    found = examine("http://127.0.0.1:1", 0.0)
    assert found.problem is not None
    assert found.height == -1


def test_a_url_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 1
    assert "Missing required option: '--rpc=URL[,URL...]'" in capsys.readouterr().err


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["0x1", "0xffffffffffffffff"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner, max_size=6),
    max_leaves=12,
)


class Answers:
    """A service that answers each method with a preset value."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = {}
        self.whole: Any = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                method = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["method"]
                whole = outer.whole if outer.whole is not None else {"result": outer.results.get(method)}
                body = json.dumps(whole).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    service = Answers()
    Thread(target=service.server.serve_forever, daemon=True).start()
    yield service
    service.server.shutdown()
    service.server.server_close()


def _run_doctor(url: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["doctor", f"--rpc={url}", "--wait=0"])
    return code, out.getvalue() + err.getvalue()


def _assert_safe(code: int, shown: str) -> None:
    assert code in (0, 1), shown
    assert "Internal error" not in shown
    assert all(char.isprintable() or char == "\n" for char in shown), repr(shown)


@settings(max_examples=150, deadline=None)
@given(whole=JSON)
def test_any_json_answer_is_survived(answers: Answers, whole: Any) -> None:
    answers.whole = [] if whole is None else whole
    _assert_safe(*_run_doctor(answers.url))


@settings(max_examples=150, deadline=None)
@given(results=st.fixed_dictionaries({}, optional=dict.fromkeys(METHODS, JSON)), status=JSON)
def test_any_json_result_is_survived(answers: Answers, results: dict[str, Any], status: Any) -> None:
    block = {"number": "0x7", "hash": "0x07", "timestamp": "0x1"}
    healthy = {"web3_clientVersion": "v", "eth_getBlockByNumber": block, "net_peerCount": "0x3", "eth_syncing": False}
    answers.whole, answers.results = None, {**healthy, "qbft_getStatus": status, **results}
    _assert_safe(*_run_doctor(answers.url))


def test_terminal_escapes_of_a_node_are_shown_as_text(answers: Answers) -> None:
    evil = "\x1b]0;owned\x07\nline \u202e"
    block = {"number": "0x7", "hash": "0x07", "timestamp": "0x1"}
    report = {"phase": evil, "quorum": 3, "validators": [evil], "disconnected": [evil], "explanation": [evil]}
    answers.whole = None
    answers.results = {
        "web3_clientVersion": evil,
        "eth_getBlockByNumber": block,
        "net_peerCount": "0x3",
        "eth_syncing": False,
        "qbft_getStatus": {**report, "members": [{"address": evil, "isPassedOver": True}]},
    }
    code, shown = _run_doctor(answers.url)
    _assert_safe(code, shown)
    assert "\\x1b]0;owned\\x07\\nline \\u202e, block 7, 3 peers" in shown
    answers.whole = {"error": {"code": -1, "message": evil, "data": evil}}
    _assert_safe(*_run_doctor(answers.url))
