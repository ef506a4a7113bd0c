"""Private payloads move into a new node, which computes the same private states as the old node."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.cli.main import main
from ophion.enclave.keyfile import KeyPair, write_pair
from ophion.enclave.store_writer import PAYLOADS
from ophion.node.datadir import DataDirectory
from ophion.runtime.clock import SystemEntropy
from ophion.testing.node_process import NodeProcess
from ophion.testing.old_enclaves import tessera_payload, write_tessera_database
from ophion.testing.private_transactions import NUMBER_CONTRACT, PrivateClient, set_number
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion

FIRST, SECOND = (KeyPair.of(bytes([seed]) * 32) for seed in (1, 2))
LIMIT_S = 60.0
NETWORK = ("--network=dev", "--dev-fork=berlin")
"""A network without a base fee, on which markers pay nothing."""


def test_a_member_moves_with_its_payloads(tmp_path: Path) -> None:
    """The old node has the keys of both members. The new node is only the second member, and gets only the boxes of its
    key.
    """
    for name, pair in (("first.key", FIRST), ("second.key", SECOND)):
        write_pair(tmp_path / name, pair, SystemEntropy())
    private = ("--privacy-enabled", "--min-gas-price=0", "--rpc-http-api=ETH,NET,WEB3,EEA,PRIV")
    mining = ("--miner-enabled", f"--miner-coinbase=0x{DEV_KEYS[0].address.hex()}")
    keys = f"--privacy-enclave-key-file={tmp_path / 'first.key'},{tmp_path / 'second.key'}"
    moved_key = f"--privacy-enclave-key-file={tmp_path / 'second.key'}"
    old_path, new_path = tmp_path / "old", tmp_path / "new"
    with NodeProcess(old_path, *NETWORK, *mining, *private, keys) as node:
        client = PrivateClient(node, DEV_KEYS[0], int(node.rpc("eth_chainId"), 16))
        receipt = client.receipt(client.send(NUMBER_CONTRACT, private_for=(SECOND.public,)))
        for value in (47, 48):
            marker = client.send(set_number(value), to=receipt["contractAddress"], private_for=(SECOND.public,))
            assert client.receipt(marker)["status"] == "0x1"
    export, database = tmp_path / "chain.rlp", tmp_path / "tessera.db"
    ophion("blocks", "export", f"--to={export}", f"--data-path={old_path}").succeeded()
    with DataDirectory.open_existing(old_path) as directory:
        rows = directory.store(read_only=True).rows(PAYLOADS, b"", b"", 100)
    write_tessera_database(database, [(key, tessera_payload(record, [SECOND.public])) for key, record in rows])
    ophion("migrate", f"--from-rlp={export}", f"--data-path={new_path}", *NETWORK).succeeded()
    arguments = (f"--from-tessera={database}", f"--data-path={new_path}", moved_key)
    done = ophion("migrate", "private", *arguments).succeeded()
    assert "Moved 3 payloads of 1 groups; 0 were there, 0 are not moved" in done.out
    old = NodeProcess(old_path, *NETWORK, *private, keys)
    new = NodeProcess(new_path, *NETWORK, *private, moved_key)
    with old, new:
        wait_for(lambda: new.rpc("priv_getTransactionReceipt", marker) is not None, LIMIT_S, "private states")
        urls = [f"--{name}=http://127.0.0.1:{node.ports['json-rpc']}" for name, node in (("old", old), ("new", new))]
        report = ophion("migrate", "private", "--compare", *urls).succeeded()
        assert "3 transactions, 1 contracts, 1 accounts; 5/5 answers equal" in report.out
        assert "3 markers, 0 of them of others; 1 groups" in report.out


def test_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(message: str, *arguments: str) -> None:
        assert main(["migrate", "private", f"--data-path={tmp_path}", *arguments]) == 1
        assert message in capsys.readouterr().err

    source = f"--from-tessera={tmp_path / 'none'}"
    fails("Give one source: --from-tessera=PATH")
    fails("--compare needs --old=URL and --new=URL", "--compare", "--old=http://127.0.0.1:1")
    fails("--privacy-enclave-key-file=FILE", source)
    write_pair(tmp_path / "a.key", FIRST, SystemEntropy())
    key = f"--privacy-enclave-key-file={tmp_path / 'a.key'}"
    fails("There is no file or directory", source, key)
    (tmp_path / "none").write_text("no database" * 100)
    fails("as a SQLite database of Tessera", source, key)
