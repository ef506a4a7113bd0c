"""Tests the wire protocol through its Python binding with test vectors of the specifications. Rust tests cover the
internals.
"""

from __future__ import annotations

import hashlib

import pytest

from ophion import errors
from ophion.native import wire
from ophion.native.crypto import PrivateKey, keccak256, public_key
from ophion.native.exceptions import as_ophion_error
from ophion.native.transactions import Body, Withdrawal, decode_block
from ophion.native.wire import Handshake, Session, WireError
from ophion.primitives import rlp
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from tests.data.small_chain.make import BLOCKS_FILE
from tests.data.wire.vectors import vector
from tests.fuzz.samples import split_blocks

A, B = vector("initiator_key"), vector("recipient_key")
PACKETS = {
    "ping_packet": 1,
    "ping_with_more_packet": 1,
    "ping_of_later_version_packet": 1,
    "pong_packet": 2,
    "find_node_packet": 3,
    "neighbors_packet": 4,
}


def entropy(seed: int) -> bytes:
    return hashlib.shake_128(seed.to_bytes(4, "big")).digest(wire.HANDSHAKE_ENTROPY)


def sessions() -> tuple[Session, Session]:
    """Return the sessions of initiator and recipient after a handshake."""
    initiator = Handshake.initiate(A, public_key(B), entropy(1))
    ack, remote, theirs = Handshake.answer(B, initiator.auth, entropy(2))
    assert remote == public_key(A)
    return initiator.finish(ack), theirs


def open_sessions() -> tuple[Session, Session]:
    """Return both sessions after both Hellos."""
    pair = sessions()
    for session in pair:
        session.is_compressed = True
        session.max_message = 2**24 - 1
    return pair


# --- handshake ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["auth", "auth_of_later_version"])
def test_an_auth_of_the_specification_is_answered(name: str) -> None:
    ack, remote, _ = Handshake.answer(B, vector(name), entropy(0))
    assert remote == vector("initiator_id")
    assert int.from_bytes(ack[:2], "big") == len(ack) - 2


@pytest.mark.parametrize("name", ["auth", "auth_of_later_version"])
def test_a_caller_is_named_before_it_is_answered(name: str) -> None:
    assert Handshake.caller(B, vector(name)) == vector("initiator_id")
    for wrong in (vector(name)[:-1], b"", b"\x00\x00", vector("ack")):
        with pytest.raises(WireError):
            Handshake.caller(B, wrong)


def test_each_handshake_looks_different() -> None:
    seen = {Handshake.initiate(A, public_key(B), entropy(seed)).auth for seed in range(20)}
    assert len(seen) == 20
    assert len({len(auth) for auth in seen}) > 5, "padding of random length"
    assert all(len(auth) <= wire.MAX_HANDSHAKE_SIZE + 2 for auth in seen)


def test_another_key_than_the_dialled_one_cannot_answer() -> None:
    initiator = Handshake.initiate(A, public_key(B), entropy(1))
    with pytest.raises(WireError, match="^auth: it is not meant for this key$"):
        Handshake.answer(DEV_KEYS[0].secret(), initiator.auth, entropy(2))
    ack, _, _ = Handshake.answer(B, initiator.auth, entropy(2))
    other = Handshake.initiate(A, public_key(B), entropy(3))
    session = other.finish(ack)  # `finish` accepts the ack of another handshake, but no later message can be decrypted
    with pytest.raises(WireError, match="frame header"):
        session.feed(sessions()[1].seal([(0, b"hello")]))


@pytest.mark.parametrize("message", [b"", b"\x01", b"\x00\x00", b"\x08\x01" + bytes(2049), vector("auth")[:-1]])
def test_what_is_no_auth_is_refused(message: bytes) -> None:
    with pytest.raises(WireError, match="^auth: "):
        Handshake.answer(B, message, entropy(0))


def test_bad_keys_are_named() -> None:
    with pytest.raises(WireError, match="^remote key: not a point of the curve$"):
        Handshake.initiate(A, bytes(64), entropy(1))
    with pytest.raises(WireError, match="^private key: "):
        Handshake.initiate(bytes(32), public_key(B), entropy(1))
    with pytest.raises(WireError, match="^entropy: 412 bytes expected, got 2$"):
        Handshake.initiate(A, public_key(B), b"ab")


# --- frames -------------------------------------------------------------------------------------


def test_messages_arrive_whole_and_in_order_byte_by_byte() -> None:
    ours, theirs = open_sessions()
    messages = [(0x10, b"a"), (0x11, b""), (0x12, bytes(5000)), (0, b"\xc0")]
    got = []
    for byte in ours.seal(messages):
        got += theirs.feed(bytes((byte,)))
    assert got == messages
    assert theirs.buffered == 0
    assert ours.feed(theirs.seal(messages)) == messages


def test_hello_comes_alone_and_the_rest_when_its_form_is_known() -> None:
    ours, theirs = sessions()
    assert not ours.is_compressed
    assert ours.max_message == 2048
    sent = ours.seal([(0, vector("hello"))])
    ours.is_compressed = True
    sent += ours.seal([(0x10, vector("status_68")), (2, b"\xc0")])
    assert theirs.feed(sent) == [(0, vector("hello"))]
    assert theirs.buffered > 0
    theirs.is_compressed = True
    assert theirs.feed(b"") == [(0x10, vector("status_68")), (2, b"\xc0")]


def test_an_old_peer_never_compresses() -> None:
    ours, theirs = sessions()
    for session in (ours, theirs):
        session.is_compressed = False
        session.max_message = 10_000
    assert theirs.feed(ours.seal([(0, b"hello"), (0x10, bytes(9000))])) == [(0, b"hello"), (0x10, bytes(9000))]


def test_a_size_is_refused_from_the_header_alone() -> None:
    ours, theirs = sessions()
    sent = ours.seal([(0, bytes(16 * 2**20 - 2))])
    with pytest.raises(WireError, match="^frame: a size of 16777215 bytes, at most 2048 are taken$"):
        theirs.feed(sent[:32])
    with pytest.raises(WireError, match="at most 2048"):
        theirs.feed(b"")


def test_zeros_are_refused_by_what_they_announce() -> None:
    ours, theirs = open_sessions()
    theirs.max_message = 10 * 2**20
    with pytest.raises(WireError, match="^message 0x17: 16000000 bytes, at most 10485760 are taken$"):
        theirs.feed(ours.seal([(0x17, bytes(16_000_000))]))
    assert theirs.buffered == 0


def test_a_transport_takes_16_mib() -> None:
    ours, theirs = open_sessions()
    assert theirs.feed(ours.seal([(0x17, bytes(2**24 - 1))])) == [(0x17, bytes(2**24 - 1))]
    with pytest.raises(WireError, match="^message 0x17: "):
        ours.seal([(0x17, bytes(2**24))])
    assert theirs.feed(ours.seal([(0x17, b"still in step")])) == [(0x17, b"still in step")]


def test_a_large_message_arrives_in_pieces() -> None:
    ours, theirs = open_sessions()
    payload = bytes(range(256)) * 300 + bytes(2_000_000) + keccak256(b"1") * 3000
    sent = ours.seal([(0x17, payload), (0x18, b"after it")])
    got = []
    for start in range(0, len(sent), 5000):
        got += theirs.feed(sent[start : start + 5000])
    assert got == [(0x17, payload), (0x18, b"after it")]
    assert theirs.buffered == 0


def test_half_a_large_message_is_dropped_with_its_session() -> None:
    ours, theirs = open_sessions()
    sent = ours.seal([(0x17, bytes(4_000_000))])
    assert theirs.feed(sent[: len(sent) // 2]) == []
    assert 1_000_000 < theirs.buffered < 3_000_000
    del theirs


def test_max_message_has_an_end_of_its_own() -> None:
    ours, _ = open_sessions()
    ours.max_message = 2**40
    assert ours.max_message == 2**24 - 1


# --- lists --------------------------------------------------------------------------------------


def test_lists_are_cut_like_the_python_codec_cuts_them() -> None:
    for name in ("hello", "status_68", "status_69", "new_pooled_hashes", "headers_by_hash", "block_range_update"):
        assert wire.split_list(vector(name), 65_536) == rlp.split_list(vector(name), 1024)


def test_no_list_makes_more_objects_than_its_reader_accepts() -> None:
    assert len(wire.split_list(rlp.list_of([b"\x80"] * 3), 3)) == 3
    for split in (wire.split_list, wire.split_transactions, wire.split_and_hash_transactions, wire.split_bodies):
        with pytest.raises(WireError, match="more than 3 items$"):
            split(rlp.list_of([b"\xc2\xc0\xc0"] * 4), 3)


def test_a_body_of_more_transactions_than_signatures_have_bytes_is_refused() -> None:
    tiny = rlp.encode([b"", b"", b"", b"", b"", b"", 27, 1, 1])
    body = rlp.list_of([rlp.list_of([tiny] * 100_000), rlp.EMPTY_LIST])
    with pytest.raises(WireError, match="more of them than signed transactions have bytes"):
        wire.split_bodies(rlp.list_of([body]), 1)
    ommers = rlp.list_of([rlp.EMPTY_LIST, rlp.list_of([b"\xc0"] * 100_000)])
    with pytest.raises(WireError, match="ommers: more than 16"):
        wire.split_bodies(rlp.list_of([ommers]), 1)


def test_a_payload_over_the_limit_of_its_id_comes_as_its_size() -> None:
    ours, theirs = open_sessions()
    theirs.max_message = 100_000
    theirs.set_max_size(0x17, 1000)
    sent = ours.seal([(0x17, bytes(1001)), (0x17, bytes(1000)), (0x18, bytes(1001))])
    assert theirs.feed(sent) == [(0x17, 1001), (0x17, bytes(1000)), (0x18, bytes(1001))]


def test_transactions_of_every_form() -> None:
    raws = [legacy_transaction(DEV_KEYS[0], 0), fee_transaction(DEV_KEYS[0], 1), b"\x03" + bytes(100)]
    joined = wire.join_transactions(raws)
    assert joined == rlp.list_of([raws[0], rlp.encode_bytes(raws[1]), rlp.encode_bytes(raws[2])])
    assert wire.split_transactions(joined, 65_536) == raws
    assert wire.split_and_hash_transactions(joined, 65_536) == ([keccak256(raw) for raw in raws], raws)
    with pytest.raises(WireError, match="^transactions: item 1: a typed transaction must begin with its type$"):
        wire.split_transactions(rlp.list_of([raws[0], b"\x80"]), 65_536)


def test_bodies_of_stored_blocks_are_restored() -> None:
    blocks = split_blocks(BLOCKS_FILE.read_bytes())
    served = rlp.list_of([wire.body_rlp(block) for block in blocks])
    bodies = wire.split_bodies(served, 65_536)
    assert len(bodies) == len(blocks)
    for block, body in zip(blocks, bodies, strict=True):
        header, expected = decode_block(block)
        assert body.encode_block(header) == block
        assert body.transactions_root == expected.transactions_root


def test_bodies_with_withdrawals() -> None:
    body = Body.of([fee_transaction(DEV_KEYS[0], 0)], [], [Withdrawal(1, 2, bytes(20), 3)])
    raw = wire.body_rlp(body.encode_block(b"\xc0"))
    (again,) = wire.split_bodies(rlp.list_of([raw]), 65_536)
    assert again.withdrawals_root == body.withdrawals_root
    assert again.transactions[0].sender == DEV_KEYS[0].address


def test_a_bad_body_is_named() -> None:
    with pytest.raises(WireError, match="^body 1: transaction 0: "):
        wire.split_bodies(rlp.encode([[[], []], [[[1, 2]], []]]), 65_536)
    with pytest.raises(WireError, match="^body 0: a list is expected$"):
        wire.split_bodies(rlp.encode([b"x"]), 65_536)
    with pytest.raises(WireError, match="^block: header: a list is expected$"):
        wire.body_rlp(rlp.encode([b"x"]))


# --- discovery ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), PACKETS.items())
def test_packets_of_the_specification(name: str, kind: int) -> None:
    datagram = vector(name)
    hash, signer, found, data = wire.open_packet(datagram)
    assert (hash, signer, found) == (datagram[:32], vector("recipient_id"), kind)
    assert rlp.decode_list(data), "one list, without what follows it"
    assert datagram[98:].startswith(data)
    assert wire.open_packet(wire.seal_packet(A, kind, data))[1:] == (public_key(A), kind, data)


def test_packets_are_small_and_whole() -> None:
    assert len(wire.seal_packet(A, 1, rlp.encode(bytes(1179)))) == 1280
    for wrong in (b"", bytes(1281), bytes(200), vector("pong_packet")[:-1]):
        with pytest.raises(WireError, match="^packet"):
            wire.open_packet(wrong)
    with pytest.raises(WireError, match="^packet: 1281 bytes"):
        wire.seal_packet(A, 1, rlp.encode(bytes(1180)))


def test_the_record_of_the_specification() -> None:
    pairs = [(b"ip", rlp.encode_bytes(b"\x7f\0\0\1")), (b"udp", rlp.encode_int(30303))]
    record = wire.sign_record(B, 1, pairs)
    assert record == vector("record")
    node_id, sequence, found = wire.read_record(record)
    assert keccak256(node_id) == vector("record_address")
    assert sequence == 1
    assert dict(found).keys() == {b"id", b"ip", b"secp256k1", b"udp"}
    assert set(pairs) <= set(found)


def test_a_record_of_another_key_or_too_many_bytes_is_refused() -> None:
    record = bytearray(wire.sign_record(A, 1, []))
    record[20] ^= 1
    with pytest.raises(WireError, match="^record signature: "):
        wire.read_record(bytes(record))
    with pytest.raises(WireError, match="^record: 30. bytes, more than 300$"):
        wire.sign_record(A, 1, [(b"x", rlp.encode(bytes(180)))])
    with pytest.raises(WireError, match="^record id: twice in one record$"):
        wire.sign_record(A, 1, [(b"id", b"\x05")])


def test_a_record_says_nothing_that_moves_a_cursor() -> None:
    with pytest.raises(WireError, match=r"^record \\x1b\[31m: "):
        wire.sign_record(PrivateKey(A).secret(), 1, [(b"\x1b[31m", b"")])


def test_outside_the_engine_it_is_a_decode_error() -> None:
    error = as_ophion_error(WireError("frame: it is empty"))
    assert isinstance(error, errors.DecodeError)
    assert str(error) == "frame: it is empty"
