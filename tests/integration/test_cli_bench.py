"""Tests `ophion bench` against real nodes: one with fees, one with free gas."""

from __future__ import annotations

import json
from pathlib import Path

from ophion.testing.node_process import NodeProcess
from tests.integration.command import ophion

QUICK = ("--step-seconds=1", "--search-seconds=60", "--max-rate=20")
"""Options that end the search at the first sustained rate, which any machine reaches. The search retries if the machine
stalls.
"""


def test_a_rate_is_found_and_reported(tmp_path: Path) -> None:
    with NodeProcess(
        tmp_path / "data", "--rpc-ws-port=0", "--graphql-http-port=0", "--block-period=0.2", command=("dev",)
    ) as node:
        url = f"http://127.0.0.1:{node.ports['json-rpc']}"
        done = ophion("bench", f"--rpc={url}", f"--to={tmp_path / 'report'}", *QUICK).succeeded()
        assert "transactions per second, sustained (" in done.out
        assert "What limits it: " in done.out
        report = json.loads((tmp_path / "report" / "report.json").read_text())
        best = report["best"]
        assert best["sent"] == best["mined"] > 0
        assert best["refused"] == {}
        assert 0 < best["mined_p50_s"] <= best["mined_p99_s"]
        assert report["chainId"] == 2018
        assert "transactions/s</p>" in (tmp_path / "report" / "report.html").read_text()
        assert int(node.rpc("txpool_status")["pending"], 16) == 0 if "txpool" in node.rpc("rpc_modules") else True


def test_a_published_test_account_pays_where_it_has_funds(tmp_path: Path) -> None:
    """On a network other than the development network, such as a quickstart, a test account with funds pays for the
    load.
    """
    options = ("--rpc-ws-port=0", "--graphql-http-port=0", "--block-period=0.2", "--min-gas-price=1000")
    other = "--override-genesis-config=chainId=4242"
    with NodeProcess(tmp_path / "data", *options, other, command=("dev",)) as node:
        url = f"http://127.0.0.1:{node.ports['json-rpc']}"
        done = ophion("bench", f"--rpc={url}", *QUICK).succeeded()
        assert "chain 4242" in done.out


def test_the_payer_must_be_named_and_funded(tmp_path: Path) -> None:
    key = tmp_path / "poor.key"
    key.write_text("0x" + "11" * 32)
    with NodeProcess(
        tmp_path / "data", "--rpc-ws-port=0", "--graphql-http-port=0", "--min-gas-price=1000", command=("dev",)
    ) as node:
        url = f"http://127.0.0.1:{node.ports['json-rpc']}"
        ophion("bench", f"--rpc={url}", f"--key-file={key}", *QUICK).failed("has 0 wei: too little for the benchmark.")
    ophion("bench", f"--rpc={url}", *QUICK).failed("cannot be reached")
    ophion("bench", "--rpc=nowhere").failed("expected http://HOST:PORT but was 'nowhere'")
    ophion("bench").failed("Missing required option: '--rpc=URL'")


def test_a_node_that_answers_about_the_chain_alone_is_measured_and_examined(tmp_path: Path) -> None:
    options = ("--rpc-ws-port=0", "--graphql-http-port=0", "--block-period=0.2", "--rpc-http-api=ETH")
    with NodeProcess(tmp_path / "data", *options, command=("dev",)) as node:
        url = f"http://127.0.0.1:{node.ports['json-rpc']}"
        done = ophion("bench", f"--rpc={url}", *QUICK).succeeded()
        assert "a node of unknown version" in done.out
        found = ophion("doctor", f"--rpc={url}").succeeded()
        assert "version unknown, block " in found.out
        assert "peers unknown" in found.out
        assert "The network is producing blocks." in found.out
