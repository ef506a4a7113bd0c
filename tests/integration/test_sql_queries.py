"""`sql_query` of a real node: answers, limits, and attacks, which must not reach files or stop the node."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import MINING, NodeProcess, RpcFailure
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.integration.test_auth_node import post

pytest.importorskip("duckdb", reason="the extra ophion[data] is not installed")
pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")

LIMIT_S = 60.0
MAX_ROWS = 50
ENDLESS = "with recursive n(i) as (select 1::hugeint union all select i + 1 from n) select count(*) from n"
HUGE_SORT = "select max(x) from (select hash(a.range) x from range(400000000) a order by x offset 5)"
HUGE_TEXT = "select length(repeat('x', 1000000000) || repeat('y', 1000000000))"
COUNT = "select count(*) from range(3000000) where range % 7 = 3"
WIDE = "select repeat('x', 1000000) from range(40)"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    data = tmp_path_factory.mktemp("sql") / "data"
    options = ("--rpc-http-api=ETH,NET,WEB3,SQL", "--rpc-sql-timeout=4", f"--rpc-sql-max-rows={MAX_ROWS}",
               "--rpc-sql-max-memory=128", "--http-timeout-seconds=120")  # fmt: skip
    with NodeProcess(data, *MINING, *options) as running:
        for nonce in range(3):
            raw = legacy_transaction(DEV_KEYS[1], nonce, to=bytes([nonce + 1]) * 20, value=10**18)
            running.receipt(running.send(raw))
        yield running


def rows(node: NodeProcess, text: str) -> Any:
    return node.rpc("sql_query", text)["rows"]


def refusal(node: NodeProcess, text: str) -> str:
    with pytest.raises(RpcFailure) as refused:
        node.rpc("sql_query", text)
    return str(refused.value)


def test_queries_see_the_live_chain(node: NodeProcess) -> None:
    assert rows(node, "select count(*) from transactions") == [[3]]
    found = node.rpc("sql_query", "select to_hex(to_address) recipient, value_string from transactions order by 1")
    assert found["rows"] == [["0x" + f"{at:02x}" * 20, str(10**18)] for at in (1, 2, 3)]
    assert [column["name"] for column in found["columns"]] == ["recipient", "value_string"]
    assert found["truncated"] is False
    node.receipt(node.send(legacy_transaction(DEV_KEYS[1], 3, to=bytes([4]) * 20, value=10**18)))
    wait_for(lambda: rows(node, "select count(*) from transactions") == [[4]], LIMIT_S, "the new block")
    # a dataset that executes blocks
    assert rows(node, "select count(*) from native_transfers where transaction_hash is not null") == [[4]]


def test_tables_are_listed_without_private_data(node: NodeProcess) -> None:
    tables = {table["name"]: table for table in node.rpc("sql_tables")}
    assert {"blocks", "transactions", "logs", "traces"} <= tables.keys()
    assert "private_transactions" not in tables
    assert tables["blocks"]["columns"][0]["description"]


def test_rows_beyond_the_limit_are_left_out(node: NodeProcess) -> None:
    found = node.rpc("sql_query", "select range from range(1000)")
    assert len(found["rows"]) == MAX_ROWS
    assert found["truncated"] is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select * from read_csv('/etc/passwd')", "The table function read_csv is not allowed"),
        ("select * from '/etc/passwd'", "There is no table '/etc/passwd'"),
        ("copy (select 1) to '/tmp/ophion-sql-test.csv'", "Only SELECT is allowed"),
        ("attach '/tmp/x.db'", "Only SELECT is allowed"),
        ("install httpfs", "Only SELECT is allowed"),
        ("load 'x.so'", "Only SELECT is allowed"),
        ("set memory_limit = '1TB'", "Only SELECT is allowed"),
        ("select * from arrow_scan(1, 2, 3)", "The table function arrow_scan is not allowed"),
        ("select nothing from blocks", "nothing"),
        ("selec 1", "syntax error"),
        (ENDLESS, "longer than 4 seconds|more than 128 MiB"),
        (HUGE_SORT, "longer than 4 seconds|more than 128 MiB"),
        (HUGE_TEXT, "more than 128 MiB"),
        (WIDE, "The result exceeds 8 MiB"),
    ],
)
def test_attacks_are_refused_and_the_next_query_works(node: NodeProcess, text: str, message: str) -> None:
    found = refusal(node, text)
    assert any(part in found for part in message.split("|")), found
    assert rows(node, "select 1") == [[1]]
    assert not Path("/tmp/ophion-sql-test.csv").exists()


def test_many_queries_at_once_are_bounded(node: NodeProcess) -> None:
    answers: list[str] = []

    def ask() -> None:
        query = {"jsonrpc": "2.0", "id": 1, "method": "sql_query", "params": [COUNT]}
        answers.append(str(post(node.ports["json-rpc"], "/", query)[1]))

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any("[[428571]]" in one for one in answers)
    assert all("[[428571]]" in one or "queries are waiting" in one for one in answers), answers
    assert node.rpc("eth_blockNumber")


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in children if b"--serve" in Path(f"/proc/{one}/cmdline").read_bytes()]


def test_the_process_ends_with_the_node(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *MINING, "--rpc-http-api=ETH,SQL", "--http-timeout-seconds=120") as node:
        assert rows(node, "select 1") == [[1]]
        (worker,) = workers_of(node.pid)
        node.kill()
        wait_for(lambda: not _is_alive(worker), LIMIT_S, "the end of the process")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_sql_is_off_by_default(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *MINING) as node:
        assert "not enabled" in refusal(node, "select 1").lower()


def test_a_token_is_required_where_authentication_is_on(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    hashed = ophion("password", "hash", "--password=pegasys").succeeded().out.strip()
    users.write_text(f'[Users.ali]\npassword = "{hashed}"\npermissions = ["eth:*"]\n')
    options = ("--rpc-http-authentication-enabled", f"--rpc-http-authentication-credentials-file={users}")
    with NodeProcess(tmp_path / "data", *options, "--rpc-http-api=ETH,SQL") as node:
        query = {"jsonrpc": "2.0", "id": 1, "method": "sql_query", "params": ["select 1"]}
        port = node.ports["json-rpc"]
        login = post(port, "/login", {"username": "ali", "password": "pegasys"})
        for token in (None, login[1]["token"]):
            assert post(port, "/", query, token)[0] == 401
        assert workers_of(node.pid) == []
