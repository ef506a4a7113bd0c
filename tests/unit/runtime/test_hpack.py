"""Tests header blocks with the examples of RFC 7541, blocks of a real etcd, and malformed blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.runtime import hpack
from ophion.runtime.hpack import MAX_BLOCK_BYTES, MAX_HEADERS, HpackError, decode_headers, encode_headers

REQUEST = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")]
ETCD_HEADERS = "880f108b1d75d0620d263d4c4d6564"
ETCD_TRAILERS = "00889acac8b21234da8f013000899acac8b5254207317f00"
ETCD_FAILURE = (
    "880f108b1d75d0620d263d4c4d656400889acac8b21234da8f02313200899acac8b5254207317fa2b6aeb51fc54a5254ce7914d27acaa4a7b1"
    "4416cee621542a49220b6772d95c6be6e3"
)


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", [("custom-key", "custom-header")]),
        ("040c2f73616d706c652f70617468", [(":path", "/sample/path")]),
        ("100870617373776f726406736563726574", [("password", "secret")]),
        ("82", [(":method", "GET")]),
        ("828684410f7777772e6578616d706c652e636f6d", REQUEST),
        ("828684418cf1e3c2e5f23a6ba0ab90f4ff", REQUEST),
        (
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
            [
                (":status", "302"),
                ("cache-control", "private"),
                ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
                ("location", "https://www.example.com"),
            ],
        ),
    ],
)
def test_examples_of_the_rfc(block: str, headers: list[tuple[str, str]]) -> None:
    assert list(decode_headers(bytes.fromhex(block))) == headers


def test_blocks_of_etcd() -> None:
    headers = ((":status", "200"), ("content-type", "application/grpc"))
    assert decode_headers(bytes.fromhex(ETCD_HEADERS)) == headers
    assert decode_headers(bytes.fromhex("20" + ETCD_HEADERS)) == headers, "the table becomes empty"
    assert decode_headers(bytes.fromhex(ETCD_TRAILERS)) == (("grpc-status", "0"), ("grpc-message", ""))
    text = "unknown method Nope for service etcdserverpb.KV"
    assert decode_headers(bytes.fromhex(ETCD_FAILURE)) == (*headers, ("grpc-status", "12"), ("grpc-message", text))


def test_the_huffman_code_is_complete() -> None:
    codes = hpack._BYTES
    end_of_text = 2**-30
    assert sorted(codes.values()) == list(range(256))
    assert sum(2.0**-length for length, _ in codes) + end_of_text == 1
    assert (codes[5, 0], codes[5, 0b01001], codes[30, 0x3FFFFFFC]) == (ord("0"), ord("t"), ord("\n"))


@given(st.lists(st.tuples(st.text(st.characters(max_codepoint=255)), st.text(st.characters(max_codepoint=255)))))
def test_decoding_reverses_encoding(headers: list[tuple[str, str]]) -> None:
    assert list(decode_headers(encode_headers(headers))) == headers


@pytest.mark.parametrize("size", [126, 127, 128, 254, 255, 4000])
def test_long_values(size: int) -> None:
    headers = [("x", "y" * size)]
    assert list(decode_headers(encode_headers(headers))) == headers


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("80", "dynamic table"),
        ("be", "dynamic table"),
        ("7f0001", "dynamic table"),
        ("3fe11f", "change of the dynamic table"),
        ("8220", "change of the dynamic table"),
        ("04", "incomplete"),
        ("040c2f", "incomplete"),
        ("00", "incomplete"),
        ("0001", "incomplete"),
        ("ff", "incomplete"),
        ("ff80808080", "too large"),
        ("0481ff", "Huffman code is incomplete"),
        ("048100", "Huffman code is incomplete"),
        ("0484ffffffff", "unknown Huffman code"),
    ],
)
def test_malformed_blocks(block: str, problem: str) -> None:
    with pytest.raises(HpackError, match=problem):
        decode_headers(bytes.fromhex(block))


def test_a_long_block_is_refused() -> None:
    with pytest.raises(HpackError, match="too long"):
        decode_headers(b"\x82" * (MAX_BLOCK_BYTES + 1))


def test_a_block_has_a_limited_number_of_headers() -> None:
    assert len(decode_headers(b"\x82" * MAX_HEADERS)) == MAX_HEADERS
    with pytest.raises(HpackError, match="too many headers"):
        decode_headers(b"\x82" * (MAX_HEADERS + 1))


@given(st.binary(max_size=200))
def test_any_bytes_are_headers_or_an_error(block: bytes) -> None:
    try:
        found = decode_headers(block)
    except HpackError:
        return
    assert sum(len(name) + len(value) for name, value in found) <= 64 * len(block)
