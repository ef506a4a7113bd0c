"""Chains made by other clients: Besu, GoQuorum, geth, and a network of two clients.

Each chain is imported with full checks, all hashes in the database are checked, and the export must equal the file.
This node must give the same answers as the client that made the chain (`expected.json`). The first blocks of each kind
are in `tests/data/chains`; the whole chains are outside of the repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.export_file import export_blocks
from ophion.errors import InvalidHeader
from ophion.node.config import NodeConfig
from tests.conftest import DATA, SHARED
from tests.unit.rpc.interface import Interface, import_chain, open_interface

REFUSED = "goquorum-qbft-gas-limit-jump"
SAMPLES = sorted((DATA / "chains").iterdir())
WHOLE = sorted((SHARED / "fixtures/chains").glob("*/"))
HEADS = {
    "besu-clique": "0x5bf654cce349d9531189ba3c72945a8a51e0fd94edd9ebf4e57b73c02941e68c",
    "besu-ibft2": "0xb39742c4183b55e08717b63a57d5e6a301d1b06ed2481c03989ce74b88c7b399",
    "besu-ibft2-transitions": "0xcdd7fc542c83e76cc3700efb9547839896ba0e342f49fd5addec092692480f76",
    "besu-ibft2-zero-base-fee": "0xda750a864eb48ec817c7633246b02578a7a4d7aaf4c74d34f2a5d238e3f691e4",
    "besu-qbft": "0x94b2ee78124d203a561e4a941d7d4a486acfcd440e1781889a94a17135b19e18",
    "besu-qbft-contract": "0x586920e4e63801a0c795b8888f70430095a3f1357d25bc93d67ceddefee249fd",
    "besu-qbft-london-at-30": "0xed95555e41bb1533a53d53952b68dc9a0e0df655df9e55c9480d8844c9ae71bc",
    "besu-qbft-shanghai-cancun": "0x3d4cf4e61eeba75500e85051e202361d7f60381e6101541e242309cf95757823",
    "besu26-qbft-osaka": "0xa8175bbf7bd64659663cfe6d264e2e3d7b318eda9050f0221215406b8972461d",
    "geth-clique": "0xa4795907b99f37645c15538e26548c44222b133a7f5d53d6f1770a65bb23f642",
    "goquorum-qbft": "0x5a06fbfe308f888d3e3107ab6dc2702d4821297d10d7b358ed5d3a916cbb6770",
}
"""Hash of the last block of each sample, as the clients report it."""


def of_folders(folders: list[Path], *, but: str = REFUSED) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("folder", [one for one in folders if one.name != but], ids=lambda one: one.name)


needs_shared = pytest.mark.skipif(not WHOLE, reason="public test data ../shared/fixtures/chains is not here")


def check_files(interface: Interface, path: Path, *sources: Path) -> None:
    """Check the database. The export must equal the first source; further sources contain the same blocks."""
    store = interface.node.chain.store
    assert store.check(10) == []
    out = path / "export.rlp"
    export_blocks(store, out)
    assert out.read_bytes() == sources[0].read_bytes()


@of_folders(SAMPLES)
def test_the_beginning_of_a_chain_of_each_kind(folder: Path, tmp_path: Path) -> None:
    blocks = folder / "blocks.rlp"
    genesis = import_chain(tmp_path, folder / "genesis.json", blocks)
    with open_interface(tmp_path, genesis, NodeConfig()) as interface:
        check_files(interface, tmp_path, blocks)
        expected = HEADS.get(folder.name)
        if expected is not None:
            assert interface.ask("eth_getBlockByNumber", "latest", False)["hash"] == expected


@needs_shared
@of_folders(WHOLE)
def test_a_whole_chain(folder: Path, tmp_path: Path) -> None:
    blocks = folder / "blocks.rlp"
    genesis = import_chain(tmp_path, folder / "genesis.json", blocks)
    with open_interface(tmp_path, genesis, NodeConfig()) as interface:
        check_files(interface, tmp_path, blocks)
        if (folder / "expected.json").exists():
            check_answers(interface, json.loads((folder / "expected.json").read_text()))


@needs_shared
def test_the_same_blocks_with_other_seals_are_known(tmp_path: Path) -> None:
    """Two clients stored different seals in 25 of 58 blocks. The node keeps the first copy and detects no fork."""
    folder = SHARED / "fixtures/chains/goquorum-besu-mixed-qbft"
    import_chain(tmp_path, folder / "genesis.json", folder / "blocks-besu.rlp")
    genesis = import_chain(tmp_path, folder / "genesis.json", folder / "blocks.rlp")
    with open_interface(tmp_path, genesis, NodeConfig()) as interface:
        check_files(interface, tmp_path, folder / "blocks-besu.rlp")
        assert interface.ask("eth_blockNumber") == hex(58)


def test_a_jump_of_the_gas_limit_is_refused_unless_the_genesis_names_goquorum(tmp_path: Path) -> None:
    folder = DATA / "chains" / REFUSED
    with pytest.raises(InvalidHeader, match='gas limit.*"isQuorum": true'):
        import_chain(tmp_path / "besu", folder / "genesis.json", folder / "blocks.rlp")
    values = json.loads((folder / "genesis.json").read_text())
    values["config"]["isQuorum"] = True
    marked = tmp_path / "genesis.json"
    marked.write_text(json.dumps(values))
    genesis = import_chain(tmp_path / "goquorum", marked, folder / "blocks.rlp")
    with open_interface(tmp_path / "goquorum", genesis, NodeConfig()) as interface:
        check_files(interface, tmp_path, folder / "blocks.rlp")
        assert interface.ask("eth_getBlockByNumber", "latest", False)["gasLimit"] == hex(60_000_000)


# --- answers of the other client ----------------------------------------------------------------


def check_answers(interface: Interface, expected: dict[str, Any]) -> None:
    for number, block_hash in enumerate(expected["hashes"]):
        assert interface.ask("eth_getBlockByNumber", hex(number), False)["hash"] == block_hash, number
    check_validators(interface, expected)
    check_metrics(interface, expected)
    head = hex(expected["head"])
    for address, balance in expected["balances"].items():
        assert interface.ask("eth_getBalance", address, head) == balance, address


def check_validators(interface: Interface, expected: dict[str, Any]) -> None:
    is_goquorum = "quorum" in expected["client"]
    spans = expected["validators"]
    ends = [span["from"] for span in spans[1:]] + [expected["head"] + 1]
    for span, end in zip(spans, ends, strict=True):
        for number in range(span["from"], end):
            # GoQuorum lists for a block the validators of the next block (consensus.md 8), so ask for the next block
            listed = interface.ask(validators_method(interface), hex(number + 1 if is_goquorum else number))
            assert listed == sorted(span["validators"]), number


def check_metrics(interface: Interface, expected: dict[str, Any]) -> None:
    metrics, head = expected["metrics"], expected["head"]
    if isinstance(metrics, dict):
        counts = metrics["sealerActivity"]
        first = head - metrics["numBlocks"]
        got = interface.ask(metrics_method(interface), hex(first), hex(head))
        made = {entry["address"]: int(entry["proposedBlockCount"], 16) for entry in got}
        assert {address: count for address, count in made.items() if count} == counts
    else:
        got = interface.ask(metrics_method(interface), hex(1), hex(head))
        assert sorted(got, key=address_of) == sorted(metrics, key=address_of)


def address_of(entry: dict[str, str]) -> str:
    return entry["address"]


def validators_method(interface: Interface) -> str:
    name = interface.node.chain.engine.name
    return {"clique": "clique_getSigners"}.get(name, f"{prefix_of(name)}_getValidatorsByBlockNumber")


def metrics_method(interface: Interface) -> str:
    return f"{prefix_of(interface.node.chain.engine.name)}_getSignerMetrics"


def prefix_of(engine: str) -> str:
    return "ibft" if engine == "ibft2" else engine
