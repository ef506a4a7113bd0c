"""Fuzz targets for input from peers: each input gives a value or one clear error, and memory stays within its limit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.chain.chain import Chain
from ophion.errors import DecodeError
from ophion.native import wire
from ophion.native.crypto import keccak256, public_key
from ophion.native.exceptions import DecodeError as NativeDecodeError
from ophion.native.store import StateDifference, StateDownload, open_store
from ophion.native.transactions import decode_transactions
from ophion.native.wire import Handshake, Session, WireError
from ophion.peers.snap.messages import Code as SnapCode
from ophion.peers.snap.messages import GetAccountRange, GetByteCodes, GetStorageRanges, decode_request
from ophion.peers.snap.request_handler import read_response
from ophion.primitives import rlp
from ophion.primitives.types import ZERO_HASH
from tests.data.wire.vectors import vector
from tests.fuzz import samples
from tests.fuzz.mutate import mutated, target
from tests.fuzz.test_decoders import is_clear
from tests.unit.peers.snap.states import CODE, CONTRACT, opened

A, B = vector("initiator_key"), vector("recipient_key")
ENTROPY = bytes(range(256)) * 2
PACKETS = ("ping", "ping_with_more", "ping_of_later_version", "pong", "find_node", "neighbors")


def sessions() -> tuple[Session, Session]:
    """Return both RLPx sessions of a connection after their Hellos."""
    initiator = Handshake.initiate(A, public_key(B), ENTROPY[: wire.HANDSHAKE_ENTROPY])
    ack, _, theirs = Handshake.answer(B, initiator.auth, ENTROPY[: wire.HANDSHAKE_ENTROPY])
    ours = initiator.finish(ack)
    for session in (ours, theirs):
        session.is_compressed = True
        session.max_message = 4096
    return ours, theirs


@target(200)
@given(mutated([vector("auth"), vector("auth_of_later_version"), vector("ack")]))
def test_handshakes(message: bytes) -> None:
    try:
        _, remote, _ = Handshake.answer(B, message, ENTROPY[: wire.HANDSHAKE_ENTROPY])
        assert remote == vector("initiator_id")
    except WireError as error:
        assert is_clear(error)
    try:
        assert Handshake.caller(B, message) == vector("initiator_id")
    except WireError as error:
        assert is_clear(error)
    try:
        Handshake.initiate(A, public_key(B), ENTROPY[: wire.HANDSHAKE_ENTROPY]).finish(message)
    except WireError as error:
        assert is_clear(error)


def frames() -> bytes:
    return sessions()[0].seal([(0x10, b"a"), (0x13, bytes(300)), (2, b"\xc0"), (0x17, bytes(range(256)) * 8)])


@target(200)
@given(mutated([frames()]), st.lists(st.integers(1, 300), min_size=1, max_size=20))
def test_streams(stream: bytes, cuts: list[int]) -> None:
    _, theirs = sessions()
    position = 0
    try:
        for cut in cuts * (len(stream) // sum(cuts) + 1):
            for _, payload in theirs.feed(stream[position : position + cut]):
                assert len(payload) <= 4096
            position += cut
            assert theirs.buffered <= 4096 + 300
    except WireError as error:
        assert is_clear(error)
        assert theirs.buffered == 0


@target(300)
@given(st.integers(0, 255), mutated([vector("snappy_ping"), b"\x88\x27" + b"\x00" + b"\xfe\x01\x00" * 90]))
def test_payloads_that_only_look_compressed(code: int, payload: bytes) -> None:
    ours, theirs = sessions()
    ours.is_compressed = False
    try:
        ((found, plain),) = theirs.feed(ours.seal([(code, payload)]))
        assert found == code
        assert len(plain) <= 4096
    except WireError as error:
        assert is_clear(error)


@target(300)
@given(mutated([vector(f"{name}_packet") for name in PACKETS]), st.booleans())
def test_packets(datagram: bytes, has_right_hash: bool) -> None:
    if has_right_hash:
        datagram = keccak256(datagram[32:]) + datagram[32:]
    try:
        hash, signer, _, data = wire.open_packet(datagram)
        assert hash == datagram[:32]
        assert len(signer) == 64
        rlp.split_list(data, 1024)
    except WireError as error:
        assert is_clear(error)
    except rlp.RlpError:
        pass  # `split_list` checks only the list, and the code that reads the items checks their form


@target(300)
@given(mutated([vector("record")]))
def test_records(record: bytes) -> None:
    try:
        node_id, sequence, pairs = wire.read_record(record)
        assert record == vector("record")
        assert wire.sign_record(B, sequence, pairs) == record
        assert node_id == public_key(B)
    except WireError as error:
        assert is_clear(error)


@target(300)
@given(mutated([rlp.list_of(samples.headers()), *samples.headers(), wire.join_transactions(samples.transactions())]))
def test_lists(data: bytes) -> None:
    try:
        assert rlp.list_of(wire.split_list(data, 65_536)) == data
        raws = wire.split_transactions(data, 65_536)
        assert wire.join_transactions(raws) == data
        assert wire.split_and_hash_transactions(data, 65_536) == ([keccak256(raw) for raw in raws], raws)
        decode_transactions(raws)
    except WireError as error:
        assert is_clear(error)


@target(300)
@given(mutated([rlp.list_of([wire.body_rlp(block) for block in samples.blocks()[:6]])]))
def test_lists_of_bodies(data: bytes) -> None:
    try:
        bodies = wire.split_bodies(data, 65_536)
        assert rlp.list_of([wire.body_rlp(body.encode_block(b"\xc0")) for body in bodies]) == data
    except WireError as error:
        assert is_clear(error)


@target(300)
@given(mutated(samples.blocks()[:6]))
def test_bodies_of_blocks(block: bytes) -> None:
    try:
        body = wire.body_rlp(block)
        assert rlp.list_of(wire.split_list(block, 65_536)[1:]) == body
    except WireError as error:
        assert is_clear(error)


KEYS = [bytes([letter]) * 32 for letter in b"abc"]
SNAP_REQUESTS = {
    SnapCode.GET_ACCOUNT_RANGE: rlp.encode([7, *KEYS, 5000]),
    SnapCode.GET_STORAGE_RANGES: rlp.encode([7, KEYS[0], KEYS[1:], b"", KEYS[2], 5000]),
    SnapCode.GET_BYTE_CODES: rlp.encode([7, KEYS, 5000]),
    SnapCode.GET_TRIE_NODES: rlp.encode([7, KEYS[0], [[b""], [b"\x1a"], [KEYS[1], b"", b"\x00\x12"]], 5000]),
}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Open a chain with a state of many accounts."""
    with opened(tmp_path_factory.mktemp("state")) as found:
        yield found


@target(100)
@given(code=st.sampled_from(list(SNAP_REQUESTS)), message=mutated(list(SNAP_REQUESTS.values())))
def test_snap_requests(chain: Chain, code: SnapCode, message: bytes) -> None:
    try:
        request = decode_request(code, message)
    except DecodeError as error:
        assert is_clear(error)
        return
    for root in (KEYS[0], chain.head.header.state_root):
        try:
            asked = request if isinstance(request, GetByteCodes) else replace(request, root=root)
            answer = read_response(chain.store, asked)
            assert len(answer) < 100_000
            assert isinstance(rlp.decode(answer, 100_000), list)
        except NativeDecodeError as error:
            assert is_clear(error)


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateDownload]:
    """Open a database into which a state is fetched."""
    store = open_store(tmp_path_factory.mktemp("fetched"), durable=False)
    yield StateDownload(store)
    store.close()


@target(100)
@given(code=st.sampled_from(list(SNAP_REQUESTS)), data=st.data())
def test_snap_responses(chain: Chain, fetched: StateDownload, code: SnapCode, data: st.DataObject) -> None:
    root = chain.head.header.state_root
    request = decode_request(code, SNAP_REQUESTS[code])
    if isinstance(request, GetAccountRange):
        request = replace(request, root=root, origin=ZERO_HASH, max_bytes=500)
    elif isinstance(request, GetStorageRanges):
        request = replace(request, root=root, accounts=[keccak256(CONTRACT)], origin=ZERO_HASH, max_bytes=500)
    elif isinstance(request, GetByteCodes):
        request = replace(request, hashes=[keccak256(CODE)])
    else:
        request = replace(request, root=root, paths=[[b""]])
    message = data.draw(mutated([read_response(chain.store, request)]))
    account = chain.store.state(root).account(CONTRACT)
    assert account is not None
    try:
        if isinstance(request, GetAccountRange):
            StateDownload.verify_accounts(message, root, ZERO_HASH)
        elif isinstance(request, GetStorageRanges):
            fetched.put_storages(message, [account[3]], ZERO_HASH)
        elif isinstance(request, GetByteCodes):
            fetched.put_codes(message, request.hashes)
        else:
            difference = StateDifference(root)
            difference.next_paths(1)
            fetched.receive_nodes(difference, message)
    except NativeDecodeError as error:
        assert is_clear(error)


RECEIPTS = rlp.encode([[[b"\x01", 21000, bytes(256), [[bytes(20), [KEYS[0]], b"data"]]]]])
BARE_RECEIPTS = rlp.encode([[[2, b"\x01", 21000, [[bytes(20), [KEYS[0]], b"data"]]], [b"", b"", 5, []]]])


@target(100)
@given(mutated([RECEIPTS, BARE_RECEIPTS]), st.booleans())
def test_receipts(message: bytes, has_blooms: bool) -> None:
    try:
        for receipts in wire.split_receipts(message, has_blooms, 4):
            assert len(receipts.root) == 32
    except NativeDecodeError as error:
        assert is_clear(error)
