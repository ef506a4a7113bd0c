"""Fuzz targets for decoders: every input gives a value or one clear error.

The short run of a target is the same each time. `FUZZ_EXAMPLES=100000 pytest tests/fuzz` makes longer runs that differ.
Each target catches the exceptions that its decoder may raise. A panic of the extension or any other exception fails the
test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ophion.chain.block import decode_block
from ophion.chainspec.genesis import parse_genesis
from ophion.cli.rlp import ExtraDataType, validators_of
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_factory import BftProtocol
from ophion.consensus.bft.messages import RawMessage
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.engine_factory import engine_for
from ophion.errors import ConfigError, DecodeError, GenesisError, KeyFileError
from ophion.native import transactions as native
from ophion.native import vectors
from ophion.native.exceptions import DecodeError as NativeDecodeError
from ophion.native.exceptions import InvalidBody, NativeError
from ophion.native.transactions import Body, Transaction, decode_transactions
from ophion.native.tries import verify_proof
from ophion.node.config import NodeConfig
from ophion.node.node_key_file import load_key
from ophion.pool.journal import JournalEntry, TransactionJournal
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.primitives.header import Header
from ophion.rpc.auth.credentials import CredentialsError, read_users
from ophion.runtime.options import load, read_file, specs_of
from tests.fuzz import samples
from tests.fuzz.mutate import mutated, mutated_json, target

ENODE = f"enode://{'ab' * 64}@127.0.0.1:30303?discport=30301"
CONFIG = b"""data-path="x"
rpc-http-enabled=true
rpc-http-port=8545
rpc-http-api=["ETH","NET"]
host-whitelist=["*"]
min-gas-price=1000
"""


def is_clear(error: BaseException) -> bool:
    """Return whether an error message is one non-empty line without terminal escapes."""
    text = str(error)
    return (
        bool(text.strip()) and all(letter.isprintable() or letter == "\ud800" for letter in text) and len(text) < 2000
    )


@target(300)
@given(mutated(samples.blocks()[:12]))
def test_blocks(data: bytes) -> None:
    try:
        header, body = native.decode_block(data)
    except NativeDecodeError as error:
        assert is_clear(error)
        return
    assert body.encode_block(header) == data, "only the one right encoding of a block decodes"
    try:
        body.recover()
        assert len(body.transactions) == body.transaction_count
    except InvalidBody as error:
        assert is_clear(error)


ENGINE = CliqueEngine(parse_genesis(samples.GENESIS).spec)


@target(300)
@given(mutated(samples.blocks()[:12]))
def test_blocks_with_their_headers(data: bytes) -> None:
    try:
        block = decode_block(data, ENGINE)
        assert block.body.encode_block(block.header.header.encode()) == data
    except DecodeError as error:
        assert is_clear(error)


@target(300)
@given(st.lists(mutated(samples.transactions()), max_size=5))
def test_transactions(raws: list[bytes]) -> None:
    for raw, decoded in zip(raws, decode_transactions(raws), strict=True):
        if isinstance(decoded, str):
            assert decoded.strip()
            assert decoded.isprintable()
            continue
        assert isinstance(decoded, Transaction)
        assert decoded.raw == raw
        assert len(decoded.sender) == 20
        decoded.json()
        for fork in ("frontier", "london", "osaka"):
            assert decoded.intrinsic_gas(fork) >= 21_000


@target(300)
@given(st.lists(mutated(samples.transactions()), max_size=3), st.lists(mutated(samples.headers()), max_size=2))
def test_bodies(raws: list[bytes], ommers: list[bytes]) -> None:
    try:
        body = Body.of(raws, ommers, None)
        assert len(body.transactions_root) == len(body.ommers_hash) == 32
        assert body.transaction_count == len(raws)
        _ = body.transactions
    except NativeError as error:
        assert is_clear(error)


@target(300)
@given(mutated(samples.headers()))
def test_headers(data: bytes) -> None:
    try:
        assert Header.decode(data).encode() == data
    except DecodeError as error:
        assert is_clear(error)


@target(300)
@given(mutated([*samples.headers(), *samples.blocks()[:3]]))
def test_rlp(data: bytes) -> None:
    try:
        assert rlp.encode(rlp.decode(data)) == data
    except DecodeError as error:
        assert is_clear(error)
        assert "byte" in str(error)


@target(300)
@given(st.data())
def test_proofs(data: st.DataObject) -> None:
    root, key, nodes = samples.proof()
    position = data.draw(st.integers(0, len(nodes) - 1))
    changed = [*nodes[:position], data.draw(mutated([nodes[position]])), *nodes[position + 1 :]]
    dropped = data.draw(st.integers(0, len(changed)))
    try:
        value = verify_proof(root, key, changed[:dropped] if dropped % 2 else changed)
    except NativeDecodeError as error:
        assert is_clear(error)
    else:
        assert value == verify_proof(root, key, nodes), "what a proof proves cannot be chosen by whoever sends it"


@target(300)
@given(mutated_json(samples.vectors("state")[:1]))
def test_state_vectors(text: bytes) -> None:
    check_vector_file(vectors.state_test, text)


@target(300)
@given(mutated_json(samples.vectors("transaction")))
def test_transaction_vectors(text: bytes) -> None:
    check_vector_file(vectors.transaction_test, text)


def check_vector_file(run: Callable[[bytes], list[tuple[str, str, bool | None, str]]], text: bytes) -> None:
    try:
        for _, _, passed, detail in run(text):
            assert passed is True or detail
    except NativeError as error:
        assert str(error).strip()


@target(300)
@given(mutated_json([samples.GENESIS]))
def test_genesis_files(text: bytes) -> None:
    try:
        genesis = parse_genesis(text)
        header = genesis.header(bytes(32))
        engine_for(genesis.spec).check_genesis(header)
        assert Header.decode(header.encode()) == header
    except GenesisError as error:
        assert is_clear(error), str(error)


@target(300)
@given(mutated(list(samples.EXTRA_DATA.values())), st.sampled_from(ExtraDataType))
def test_extra_data_of_bft_networks(data: bytes, kind: ExtraDataType) -> None:
    try:
        assert all(len(address) == 20 for address in validators_of(data, kind))
    except DecodeError as error:
        assert is_clear(error)


@target(300)
@given(mutated([ENODE.encode()]))
def test_enodes(data: bytes) -> None:
    url = data.decode("latin-1")
    try:
        assert Enode.parse(Enode.parse(url).url) == Enode.parse(url)
    except DecodeError as error:
        assert str(error).startswith("Invalid enode URL syntax.")


@target(300)
@given(mutated([CONFIG]))
def test_configuration_files(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            load(NodeConfig, read_file(Path(file.name), specs_of(NodeConfig)))
        except ConfigError as error:
            assert error.problems


@target(300)
@given(mutated([b"0x" + b"8f" * 32, b"11" * 32 + b"\n"]))
def test_key_files(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            assert len(load_key(Path(file.name)).address) == 20
        except KeyFileError as error:
            assert is_clear(error)
            assert len(content) < 8 or content.decode("latin-1").strip() not in str(error), "a secret in a message"


PROTOCOLS: tuple[BftProtocol, ...] = (Ibft2(), Qbft())
MESSAGES = {protocol: samples.bft_messages(protocol) for protocol in PROTOCOLS}


@target(300)
@given(st.data())
def test_messages_of_validators(data: st.DataObject) -> None:
    protocol = data.draw(st.sampled_from(PROTOCOLS))
    sample = data.draw(st.sampled_from(MESSAGES[protocol]))
    try:
        protocol.decode(RawMessage(data.draw(st.integers(0, 0x20)), data.draw(mutated([sample]))))
    except DecodeError as error:
        assert is_clear(error)


@target(300)
@given(mutated([b'[Users.ann]\npassword = "$2a$10$x"\npermissions = ["*:*", "eth:*"]\nprivacyPublicKey = "x"\n']))
def test_credentials_files(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            assert all(user.password_hash for user in read_users(Path(file.name)).values())
        except CredentialsError as error:
            assert is_clear(error)


@target(300)
@given(mutated([b"".join(JournalEntry(raw, 1.5).line() for raw in samples.transactions())]))
def test_journals_of_local_transactions(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        path.write_bytes(content)
        journal = TransactionJournal(path)
        entries = journal.open()
        journal.close()
        assert path.read_bytes() == b"".join(entry.line() for entry in entries)
