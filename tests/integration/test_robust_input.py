"""Malformed input of every kind for the real command: one clear error with the position, never a traceback.

`python -m tests.fuzz.block_files` tries every change of a block file. `tests/fuzz` tests single decoders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import DecodeError, GenesisError
from ophion.native import vectors
from ophion.native.exceptions import NativeError
from ophion.primitives import rlp
from tests.data.small_chain.make import BLOCKS_FILE, GENESIS_FILE, genesis_document, make_chain
from tests.fuzz.block_files import import_file, opened_chain, spoil_all
from tests.fuzz.mutate import ODD_VALUES, places, replaced
from tests.fuzz.samples import blocks
from tests.fuzz.small_chain import HEAD, check, import_small
from tests.integration.command import Finished, ophion

MEGABYTES_10 = 10_000_000
ADDRESS = "0x" + "11" * 20
FORKS = """homesteadBlock daoForkBlock eip150Block eip155Block eip158Block byzantiumBlock constantinopleBlock
    petersburgBlock istanbulBlock muirGlacierBlock berlinBlock londonBlock arrowGlacierBlock grayGlacierBlock
    mergeNetsplitBlock terminalTotalDifficulty shanghaiTime cancunTime pragueTime osakaTime"""


def test_the_small_chain_is_what_its_maker_makes(tmp_path: Path) -> None:
    genesis, made = make_chain(tmp_path)
    assert genesis.read_text() == GENESIS_FILE.read_text()
    assert made.read_bytes() == BLOCKS_FILE.read_bytes()


# --- block files --------------------------------------------------------------------------------


def test_changes_and_cuts_all_over_a_block_file_are_noticed(tmp_path: Path) -> None:
    for first in (0, 53):
        folder = tmp_path / str(first)
        folder.mkdir()
        seen = spoil_all(folder, every=107, first=first)
        assert seen.files > 500
        assert not seen.unnoticed


def nested(depth: int) -> bytes:
    """Return RLP lists nested to this depth."""
    heads = []
    size = 1
    for _ in range(depth):
        heads.append(rlp.list_of([bytes(size)])[:-size] if size < 56 else _long_head(size))
        size += len(heads[-1])
    return b"".join(reversed(heads)) + b"\xc0"


def _long_head(size: int) -> bytes:
    width = (size.bit_length() + 7) // 8
    return bytes((0xF7 + width,)) + size.to_bytes(width, "big")


def wrong_lengths() -> Iterator[tuple[str, bytes, str]]:
    """Yield name, file and error text of RLP files with one wrong length each."""
    good, second = blocks()[1], blocks()[2]
    header, body = rlp.split_list(good, 1024)[0], rlp.split_list(good, 1024)[1:]
    yield "a byte string", b"\x83abc", "at byte 0: not a block"
    yield "one byte", b"\x00", "at byte 0: not a block"
    yield "an empty list", b"\xc0", "at byte 0: not a block"
    yield "a length beyond all memory", b"\xff" + b"\xff" * 8 + good, "at byte 0: the file ends inside a block of"
    yield "a length with leading zeros", b"\xf9\x00\xff" + good, "a length with leading zeros"
    yield "a long form of a short length", b"\xf8\x01\xc0", "a long length where a short one would do"
    yield "half a length", b"\xfa\x01", "at byte 0: not a block"
    yield "one byte too many behind a block", good + b"\x01" + second, f"at byte {len(good)}: not a block"
    yield "a header alone", rlp.list_of([header]), "at byte 0: not a block"
    yield "a part too many", rlp.list_of([header, *body, b"\xc0", b"\xc0"]), "at byte 0: not a block"
    yield "a header that reaches beyond its block", b"\xc3\xf9\x02\x00", "at byte 0: not a block"
    yield "a header that is a string", rlp.list_of([rlp.encode_bytes(header), *body]), "at byte 0: not a block"
    yield "transactions that are a string", rlp.list_of([header, b"\x80", b"\xc0"]), "at byte 0: not a block"
    yield "lists nested without end", nested(300_000), "too many items"
    yield "zeros", bytes(100_000), "at byte 0: not a block"


@pytest.mark.parametrize(("content", "words"), [pytest.param(c, w, id=n) for n, c, w in wrong_lengths()])
def test_wrong_lengths_in_a_block_file(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "blocks.rlp"
    file.write_bytes(content)
    with opened_chain(tmp_path) as chain, pytest.raises(DecodeError, match=re.escape(words)) as caught:
        import_file(chain, file)
    assert str(caught.value).startswith(f"{file} at byte ")


def test_wrong_lengths_in_the_second_of_two_files(tmp_path: Path) -> None:
    bad, data = tmp_path / "bad.rlp", tmp_path / "data"
    bad.write_bytes(nested(300_000))
    done = import_small(data, f"--from={bad}").failed(f"{bad} at byte 0: not a block: ", f"stored: {HEAD}")
    assert len(done.err.splitlines()) < 5
    assert f"No damage found up to {HEAD}." in check(data).succeeded().out


def test_everything_before_a_spoilt_block_stays(tmp_path: Path) -> None:
    content = bytearray(BLOCKS_FILE.read_bytes())
    content[sum(map(len, blocks()[:20])) + 300] ^= 1  # the changed byte is in the header of block 20
    bad = tmp_path / "bad.rlp"
    bad.write_bytes(content)
    data = tmp_path / "data"
    import_small(data, blocks=bad).failed("Invalid header at block number 20 (0x", "stored: block 19 ")
    assert "No damage found up to block 19 " in check(data).succeeded().out
    assert f"Head is {HEAD}" in import_small(data).succeeded().out


# --- genesis files ------------------------------------------------------------------------------


def everything() -> dict[str, Any]:
    """Return a genesis with every configuration key of every consensus engine."""
    document: dict[str, Any] = genesis_document()
    blobs = {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477}
    bft = {
        "blockperiodseconds": 2,
        "epochlength": 30000,
        "requesttimeoutseconds": 10,
        "messageQueueLimit": 1,
        "duplicateMesageLimit": 1,
        "futureMessagesLimit": 1,
        "futureMessagesMaxDistance": 1,
        "gossipedHistoryLimit": 1,
        "blockreward": "0x1",
        "miningbeneficiary": ADDRESS,
        "xblockperiodmilliseconds": 1,
        "xemptyblockperiodseconds": 1,
        "validatorcontractaddress": ADDRESS,
        "startBlock": 1,
    }
    change = {"block": 5, "validators": [ADDRESS], "blockperiodseconds": 1, "validatorselectionmode": "blockheader"}
    document["config"] = {
        "chainId": 1,
        **dict.fromkeys(FORKS.split(), 0),
        "eip150Hash": "0x" + "00" * 32,
        "blobSchedule": {"cancun": blobs, "prague": blobs},
        "contractSizeLimit": 1000,
        "evmStackSize": 1024,
        "ecCurve": "secp256k1",
        "zeroBaseFee": True,
        "fixedBaseFee": False,
        "depositContractAddress": ADDRESS,
        "discovery": {"bootnodes": ["enode://"], "dns": ""},
        "ethash": {"fixeddifficulty": 100},
        "clique": {"blockperiodseconds": 1, "epochlength": 10, "createemptyblocks": True, "period": 1, "epoch": 10},
        "ibft2": bft,
        "qbft": bft,
        "transitions": {
            "clique": [{"block": 3, "blockperiodseconds": 3, "createemptyblocks": False}],
            "ibft2": [change],
            "qbft": [change],
        },
    }
    word = "0x" + "00" * 32
    document.update({"mixHash": word, "parentHash": word, "coinbase": ADDRESS, "number": "0x0", "gasUsed": "0x0"})
    document.update({"baseFeePerGas": "0x0", "blobGasUsed": "0x0", "excessBlobGas": "0x0"})
    document["parentBeaconBlockRoot"] = word
    document["alloc"] = {
        ADDRESS: {"balance": "5", "nonce": "0x1", "code": "0x00", "storage": {"0x1": "0x2"}, "comment": "x"}
    }
    return document


def test_every_member_of_a_genesis_with_values_of_every_wrong_kind() -> None:
    document = everything()
    parse_genesis(json.dumps(document))
    refused = 0
    for place in places(document):
        for value in ODD_VALUES:
            text = json.dumps(replaced(document, place, value))
            try:
                genesis = parse_genesis(text)
                engine_for(genesis.spec).check_genesis(genesis.header(bytes(32)))
            except GenesisError as error:
                refused += 1
                assert error.message.isprintable() or value == "\ud800", error.message
    assert refused > 2000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[" * MEGABYTES_10, "nested deeper than 32 levels at line 1, column 33"),
        (b'{"a":' * (MEGABYTES_10 // 5), "nested deeper than 32 levels at line 1, column 161"),
        (b'{"config":{"chainId":' + b"9" * MEGABYTES_10 + b"}}", "a number of 10000000 digits"),
        (b'{"config":{},"CONFIG":{}}', "member 'CONFIG' appears twice in one object"),
    ],
    ids=["lists", "objects", "digits", "twice"],
)
def test_genesis_files_that_are_no_genesis(tmp_path: Path, text: bytes, words: str) -> None:
    file = tmp_path / "genesis.json"
    file.write_bytes(text)
    data = tmp_path / "data"
    done = import_small(data, genesis=file).failed(str(file), words)
    assert len(done.err) < 1000
    assert not data.exists()


# --- test files and input of tools --------------------------------------------------------------


@pytest.mark.parametrize("text", [b"[" * MEGABYTES_10, b'{"a":' * (MEGABYTES_10 // 5), b"9" * MEGABYTES_10, b"", b"{"])
def test_vector_files_that_are_none(text: bytes) -> None:
    for run in (vectors.state_test, vectors.transaction_test):
        with pytest.raises(NativeError, match=r"line 1 column \d+"):
            run(text)


def tool(tmp_path: Path, content: bytes, *arguments: str) -> Finished:
    file = tmp_path / "input"
    file.write_bytes(content)
    return ophion(*arguments[:-1], f"{arguments[-1]}={file}").failed()


def test_input_of_tools_nested_without_end(tmp_path: Path) -> None:
    lists = b"[" * MEGABYTES_10
    assert "nested too deeply" in tool(tmp_path, lists, "rlp", "encode", "--from").err
    assert "nested too deeply" in tool(tmp_path, b"a=" + lists[:1_000_000], "validate-config", "--config-file").err
    assert "more than 1048576 bytes" in tool(tmp_path, b"a=" + lists, "validate-config", "--config-file").err
    assert "more than 64 parts" in tool(tmp_path, b"a." * 500_000 + b"a=1", "validate-config", "--config-file").err
    assert "nested deeper than" in tool(tmp_path, nested(50_000).hex().encode(), "rlp", "decode", "--from").err
    done = ophion("evm", "block-test", tmp_path / "input")
    assert (done.code, done.out.splitlines()[-1]) == (1, "0 passed, 1 failed, 0 skipped")
    assert "Traceback" not in done.out + done.err
