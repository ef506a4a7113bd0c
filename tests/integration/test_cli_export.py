"""Tests `ophion export` beside a running node: rows, second runs, damaged files, bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.data import open_chain
from ophion.data.datasets import ALL
from ophion.native.crypto import keccak256
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.integration.command import OPHION, environment, ophion

pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
import pyarrow.dataset as arrow_dataset
import pyarrow.parquet as parquet

RICH = DEV_KEYS[1]
TRANSFER = keccak256(b"Transfer(address,address,uint256)")
FORMS = ("binary", "string", "f64", "decimal")


def token_transfer(to: bytes, amount: int) -> bytes:
    """Return init code that logs an ERC-20 transfer, sets a slot, calls an account and deploys one byte of code."""
    push = bytes([0x7F])
    return (
        push + amount.to_bytes(32, "big") + bytes.fromhex("5f52")
        + push + to.rjust(32, b"\0") + push + RICH.address.rjust(32, b"\0") + push + TRANSFER
        + bytes.fromhex("60205fa3")  # these bytes run LOG3 with 32 bytes of data
        + bytes.fromhex("602a5f55")  # these bytes set slot 0 to 42
        + bytes.fromhex("5f5f5f5f5f73") + to + bytes.fromhex("5af150")  # these bytes make a call without value
        + bytes.fromhex("60015ff3")
    )  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    data = tmp_path_factory.mktemp("export") / "data"
    with NodeProcess(data, *MINING, "--rpc-http-api=ETH,NET,WEB3,DEBUG,TRACE") as running:
        for nonce in range(0, 8, 2):
            to = bytes([nonce + 1]) * 20
            running.receipt(running.send(legacy_transaction(RICH, nonce, to=to, value=10**18 + nonce)))
            code = token_transfer(to, 2**100 + nonce)
            running.receipt(running.send(legacy_transaction(RICH, nonce + 1, to=None, data=code, gas=200_000)))
        yield running


def url(node: NodeProcess) -> str:
    return f"http://127.0.0.1:{node.ports['json-rpc']}"


OF_ONE_SOURCE = ("address_appearances", "validators", "private_transactions")


@pytest.mark.parametrize("name", [name for name in ALL if name not in OF_ONE_SOURCE])
def test_the_database_and_json_rpc_give_the_same_rows(node: NodeProcess, name: str) -> None:
    with open_chain(node.data_path) as stored, open_chain(url(node)) as remote:
        one, other = (
            tables.dataset(name, blocks=(0, 8), numbers=FORMS).to_arrow().combine_chunks()
            for tables in (stored, remote)
        )
    assert one.schema.equals(other.schema)
    assert one.to_pylist() == other.to_pylist()
    assert (one.num_rows > 0) == (name != "erc721_transfers")


@pytest.mark.parametrize("text", [(), ("--hex",)], ids=["bytes", "hex"])
def test_parquet_files_have_the_rows_of_arrow(node: NodeProcess, tmp_path: Path, text: tuple[str, ...]) -> None:
    """pyarrow and DuckDB read the files of the extension with the same types and values as record batches."""
    names = [name for name in ALL if name not in ("validators", "private_transactions")]
    ophion(
        "export", "parquet", f"--data-path={node.data_path}", f"--datasets={','.join(names)}", f"--to={tmp_path}",
        "--end-block=9", f"--u256={','.join(FORMS)}", *text,
    ).succeeded()  # fmt: skip
    with open_chain(node.data_path) as chain:
        for name in names:
            wanted = chain.dataset(name, blocks=(0, 8), numbers=FORMS, hex=bool(text)).to_arrow()
            (file,) = (tmp_path / name).rglob("*.parquet")
            found = parquet.read_table(file, partitioning=None)
            assert found.schema.equals(wanted.schema, check_metadata=True), name
            assert found.to_pylist() == wanted.to_pylist(), name
            duckdb = pytest.importorskip("duckdb", reason="the extra ophion[data] is not installed")
            read = duckdb.connect().read_parquet(str(file), hive_partitioning=False).to_arrow_table()
            assert read.num_rows == wanted.num_rows
            assert read.to_pylist() == wanted.to_pylist(), name


def test_parquet_needs_no_optional_package(node: NodeProcess, tmp_path: Path) -> None:
    for package in ("pyarrow", "duckdb", "fsspec"):
        (tmp_path / f"{package}.py").write_text("raise ImportError('not installed')")
    command = (
        "export",
        "parquet",
        f"--data-path={node.data_path}",
        "--datasets=blocks,traces",
        f"--to={tmp_path / 'x'}",
    )
    without = {"PYTHONPATH": str(tmp_path)}
    ophion(*command, env=without).succeeded()
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    ophion(*command, "--datasets=validators", env=without).failed("The package pyarrow is missing")


def test_rows_are_selected_by_address_event_and_party(node: NodeProcess) -> None:
    with open_chain(node.data_path) as chain:
        logs = chain.logs(event="Transfer").to_arrow()
        assert logs.num_rows == 4
        contract = logs["address"][2].as_py()
        assert chain.logs(address=contract).to_arrow().num_rows == 1
        assert chain.logs(topics=[None, None, bytes([1]).ljust(20, b"\1").rjust(32, b"\0")]).to_arrow().num_rows == 1
        assert chain.logs(event="Approval").to_arrow().num_rows == 0
        assert chain.transactions(sender=RICH.address).to_arrow().num_rows == 8
        assert chain.transactions(recipient=bytes([3]) * 20).to_arrow().num_rows == 1
        assert chain.transactions(recipient=bytes(20)).to_arrow().num_rows == 0
        relations = chain.address_appearances(address=bytes([5]) * 20, columns=["relationship"]).to_arrow()
        assert set(relations["relationship"].to_pylist()) == {"tx_to", "call_to", "erc20_transfer_to"}
        values = chain.erc20_transfers(numbers=["decimal", "string"], hex=True).to_arrow().to_pylist()
        assert [int(row["value_decimal"]) for row in values] == [2**100 + nonce for nonce in range(0, 8, 2)]
        assert values[0]["to_address"] == "0x" + "01" * 20


def test_an_export_adds_what_is_missing_and_replaces_what_is_damaged(node: NodeProcess, tmp_path: Path) -> None:
    to = tmp_path / "tables"
    command = (
        "export", "parquet", f"--data-path={node.data_path}", f"--to={to}", "--blocks-per-file=4",
        "--datasets=blocks,transactions,logs,traces,state_diffs",
    )  # fmt: skip
    first = ophion(*command, "--end-block=6").succeeded()
    assert "of blocks 0 to 5" in first.out
    assert "Verified 16 files of earlier runs; 0 were replaced." in ophion(*command, "--end-block=8").succeeded().out
    files = sorted(path.relative_to(to).as_posix() for path in to.glob("blocks/*/*"))
    assert files == [
        "blocks/from=00000000/part-00000000-00000003.parquet",
        "blocks/from=00000004/part-00000004-00000005.parquet",
        "blocks/from=00000004/part-00000006-00000007.parquet",
    ]
    (to / files[0]).write_bytes(b"changed")
    (to / files[1]).unlink()
    assert "2 were replaced" in ophion(*command, "--end-block=8").succeeded().out
    rows = arrow_dataset.dataset(to / "blocks", partitioning="hive").to_table()
    assert sorted(rows["block_number"].to_pylist()) == list(range(8))
    schema = parquet.read_schema(to / files[0])
    assert (schema.metadata[b"ophion.dataset"], schema.metadata[b"ophion.schema_version"]) == (b"blocks", b"1")
    manifest = json.loads((to / "_manifest.json").read_bytes())
    assert sum(file["rows"] for file in manifest["datasets"]["transactions"]["files"]) == 7
    assert not list(to.rglob(".unfinished-*"))


@pytest.mark.parametrize("kind", ["csv", "ndjson", "arrow"])
def test_other_formats_hold_the_same_rows(node: NodeProcess, tmp_path: Path, kind: str) -> None:
    ophion(
        "export", kind, f"--data-path={node.data_path}", f"--to={tmp_path}", "--datasets=logs", "--u256=string"
    ).succeeded()
    (file,) = tmp_path.glob("logs/from=00000000/*")
    if kind == "csv":
        assert len(file.read_text().splitlines()) == 5
    elif kind == "ndjson":
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        assert [row["topic0"] for row in rows] == ["0x" + TRANSFER.hex()] * 4
    else:
        assert arrow_dataset.dataset(file, format="ipc").count_rows() == 4


def test_an_export_over_json_rpc_writes_the_same_file(node: NodeProcess, tmp_path: Path) -> None:
    for place, source in (("a", f"--data-path={node.data_path}"), ("b", f"--rpc={url(node)}")):
        ophion(
            "export", "parquet", source, f"--to={tmp_path / place}", "--datasets=transactions", "--end-block=9"
        ).succeeded()
    a, b = (parquet.read_table(tmp_path / place / "transactions") for place in ("a", "b"))
    assert a.equals(b)


def test_bad_input_is_one_clear_error_and_leaves_no_file(node: NodeProcess, tmp_path: Path) -> None:
    to = tmp_path / "tables"
    common = ("export", "parquet", f"--data-path={node.data_path}", f"--to={to}")
    ophion(*common, "--datasets=blokcs").failed("There is no dataset 'blokcs'. Known datasets: blocks,")
    ophion(*common, "--datasets=").failed("--datasets names no dataset")
    ophion(*common, "--datasets=blocks", "--address=" + "11" * 20).failed("The dataset blocks has no filter --address")
    ophion(*common, "--start-block=5000").failed("There is no block 5000 to export")
    ophion(*common, "--address=0x12").failed("expected an address of 20 bytes")
    ophion("export", "parquet", f"--data-path={tmp_path / 'none'}", f"--to={to}").failed("There is no chain in")
    ophion("export", "parquet", "--rpc=http://127.0.0.1:1", f"--to={to}").failed("does not answer")
    ophion(*common, "--datasets=traces", "--dev-fork=london", "--network=dev").failed("needs the genesis file")
    assert not list(to.rglob("*.parquet"))
    ophion(*common, "--datasets=logs").succeeded()
    ophion(*common, "--datasets=logs", "--hex").failed("exported with another value of hex")
    (to / "_manifest.json").write_text("{")
    ophion(*common, "--datasets=logs").failed("_manifest.json is damaged")


def without_rights() -> tuple[str, ...]:
    """Return a prefix that takes the right to ignore permissions away from root."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and setpriv is not installed")
    rights = "-dac_override,-dac_read_search"
    return ("setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}")


def test_a_directory_without_permission_is_refused(node: NodeProcess, tmp_path: Path) -> None:
    to = tmp_path / "tables"
    to.mkdir()
    command = ("export", "parquet", f"--data-path={node.data_path}", f"--to={to}", "--datasets=logs")
    to.chmod(0o500)
    ophion(*command, prefix=without_rights()).failed("Unable to write", "Permission denied")
    assert list(to.iterdir()) == []
    to.chmod(0o700)
    ophion(*command, prefix=without_rights()).succeeded()
    (file,) = to.rglob("*.parquet")
    file.chmod(0)
    ophion(*command, prefix=without_rights()).failed(str(file), "Permission denied")


def test_events_and_calls_are_decoded_by_abi(node: NodeProcess, tmp_path: Path) -> None:
    transfer = [
        {"name": "from", "type": "address", "indexed": True},
        {"name": "to", "type": "address", "indexed": True},
        {"name": "value", "type": "uint256"},
    ]
    abi = tmp_path / "abi"
    abi.mkdir()
    (abi / "Token.json").write_text(json.dumps({"abi": [{"type": "event", "name": "Transfer", "inputs": transfer}]}))
    to = tmp_path / "tables"
    common = ("export", "parquet", f"--data-path={node.data_path}", f"--to={to}", "--end-block=9")
    ophion(*common, "--datasets=events,blocks", f"--abi={abi}").succeeded()
    rows = parquet.read_table(to / "event_Transfer_ddf252ad").to_pylist()
    assert [row["value"] for row in rows] == [str(2**100 + nonce) for nonce in range(0, 8, 2)]
    assert {row["from_"] for row in rows} == {RICH.address}
    assert all(row["is_decoded"] for row in rows)
    ophion(*common, "--datasets=events").failed("--abi=DIRECTORY")
    ophion(*common, "--datasets=calls", f"--abi={abi}").failed("have no function")
    (abi / "Broken.json").write_text('[{"type": "event", "name": "A", "inputs": [{"type": "uint257x"}]}]')
    ophion(*common, "--datasets=events", f"--abi={abi}").failed(
        "Broken.json is not an ABI: 'uint257x' is not an ABI type"
    )


def test_sql_answers_equal_those_of_json_rpc(node: NodeProcess) -> None:
    pytest.importorskip("duckdb", reason="the extra ophion[data] is not installed")
    data = f"--data-path={node.data_path}"
    block = node.rpc("eth_getBlockByNumber", "0x3", True)
    query = "select to_hex(transaction_hash) h, value_string from transactions where block_number = 3"
    answer = ophion("sql", data, "--format=csv", query).succeeded().out.splitlines()
    assert answer[1:] == [f"{tx['hash']},{int(tx['value'], 16)}" for tx in block["transactions"]]
    logs = node.rpc("eth_getLogs", {"fromBlock": "0x0", "toBlock": "0x8"})
    queries = (
        f"select count(*) from logs where address = to_bytes('{logs[1]['address']}') and block_number <= 8;"
        "select sum(value_decimal) from erc20_transfers where block_number < 9;"
        "select count(*) from traces where action_type = 'create' and block_number between 1 and 8;"
    )
    answer = ophion("sql", data, "--format=csv", text=queries).succeeded().out.splitlines()
    assert answer[1::2] == ["1", str(sum(int(log["data"], 16) for log in logs)), "4"]
    ophion("sql", data, "selec 1").failed("SQL: Parser Error")
    ophion("sql", data, "--format=parquet", "select 1").failed("--format=parquet needs --to=FILE")


def test_following_adds_final_blocks_joins_files_and_survives_kills(node: NodeProcess, tmp_path: Path) -> None:
    command = [
        *OPHION, "export", "parquet", f"--data-path={node.data_path}", f"--to={tmp_path}", "--datasets=blocks,logs",
        "--follow", "--final-depth=2", "--blocks-per-file=3",
    ]  # fmt: skip
    start = node.height
    for nonce in range(8, 12):
        follower = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert follower.stdout is not None
        node.receipt(node.send(legacy_transaction(RICH, nonce, to=bytes([9]) * 20, value=1)))
        for line in follower.stdout:
            if b"exported last=" in line and int(line.split(b"last=")[1].split()[0]) >= node.height - 2:
                break
        follower.kill() if nonce % 2 else follower.terminate()
        follower.wait()
        follower.stdout.close()
    head = node.height
    assert head >= start + 4
    ophion(*command[len(OPHION) : -3], "--blocks-per-file=3", f"--end-block={head - 1}").succeeded()
    rows = arrow_dataset.dataset(tmp_path / "blocks", partitioning="hive").to_table()
    assert sorted(rows["block_number"].to_pylist()) == list(range(head - 1))
    assert (tmp_path / "blocks/from=00000006/part-00000006-00000008.parquet").exists()
