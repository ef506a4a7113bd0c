from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.rlpx.capability import Capability
from ophion.peers.rlpx.hello import Hello
from ophion.primitives import rlp

PUBLIC_A = bytes.fromhex(
    "fda1cff674c90c9a197539fe3dfb53086ace64f83ed7c6eabec741f7f381cc80"
    "3e52ab2cd55d5569bce4347107a310dfd5f88a010cd2ffd1005ca406f1842877"
)
HELLO = Hello.of("node/v0.1.0/linux-x86_64/python3.12", [Capability("eth", 68, 17)], 30303, PUBLIC_A)


def refused(payload: bytes) -> DisconnectReason:
    with pytest.raises(PeerMisbehaved) as caught:
        Hello.decode(payload)
    return caught.value.reason


def test_the_vector_of_the_reference() -> None:
    expected = (
        "f87105a36e6f64652f76302e312e302f6c696e75782d7838365f36342f707974686f6e332e3132c6c5836574684482765fb840"
        + PUBLIC_A.hex()
    )
    assert HELLO.encode().hex() == expected
    assert Hello.decode(bytes.fromhex(expected)) == HELLO


def test_elements_to_come_are_ignored() -> None:
    items = rlp.decode_list(HELLO.encode())
    assert Hello.decode(rlp.encode([*items, b"more", [b"and", b"more"]])) == HELLO


def test_an_empty_name_no_port_and_capabilities_in_any_order_are_fine() -> None:
    hello = Hello(4, "", (("snap", 1), ("eth", 68), ("eth", 67)), 0, PUBLIC_A)
    assert Hello.decode(hello.encode()) == hello
    assert not hello.is_compressing
    assert hello.caps == ["snap/1", "eth/68", "eth/67"]


def test_a_name_is_shown_without_what_would_move_the_cursor() -> None:
    raw = rlp.encode([5, b"ev\x1b[2Jil\n\x00" + b"x" * 400 + b"\xff", [], 1, PUBLIC_A])
    shown = Hello.decode(raw).client_id
    assert shown == ("ev[2Jil" + "x" * 400)[:256]


def test_an_unprintable_capability_is_left_out() -> None:
    raw = rlp.encode([5, b"", [[b"e\x00th", 68], [b"\xff", 1], [b"eth", 68]], 1, PUBLIC_A])
    assert Hello.decode(raw).capabilities == (("eth", 68),)


@pytest.mark.parametrize("node_id", [b"", bytes(64), PUBLIC_A[:63], PUBLIC_A + b"\x01"])
def test_no_identity_is_reason_7(node_id: bytes) -> None:
    assert refused(replace(HELLO, node_id=node_id).encode()) is DisconnectReason.NULL_IDENTITY


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80",
        b"\xc0",
        b"\xc1",
        HELLO.encode() + b"\x00",
        replace(HELLO, client_id="x" * 2048).encode(),
        rlp.encode([5, [], [], 1, PUBLIC_A]),
        rlp.encode([5, b"", b"eth", 1, PUBLIC_A]),
        rlp.encode([5, b"", [b"eth"], 1, PUBLIC_A]),
        rlp.encode([5, b"", [[b"eth"]], 1, PUBLIC_A]),
        rlp.encode([b"\x01" * 9, b"", [], 1, PUBLIC_A]),
        rlp.encode([b"\x00\x05", b"", [], 1, PUBLIC_A]),
    ],
)
def test_anything_else_is_a_breach(payload: bytes) -> None:
    assert refused(payload) is DisconnectReason.BREACH


def test_a_port_that_is_none_counts_as_unknown() -> None:
    assert Hello.decode(replace(HELLO, listen_port=65536).encode()).listen_port == 0


@given(st.binary(max_size=200))
def test_garbage_is_refused_with_a_reason(payload: bytes) -> None:
    try:
        Hello.decode(payload)
    except PeerMisbehaved as error:
        assert error.reason in (DisconnectReason.BREACH, DisconnectReason.NULL_IDENTITY)
