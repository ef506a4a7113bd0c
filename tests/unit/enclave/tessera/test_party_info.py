"""A party info has the same keys and URLs after encoding and decoding; malformed bytes are refused."""

from __future__ import annotations

import pytest

from ophion.enclave.tessera.fields import MAX_ITEMS, encode_field, encode_number
from ophion.enclave.tessera.party_info import MAX_INFO_BYTES, PartyInfo, normal_url
from ophion.errors import DecodeError

KEYS = tuple(bytes([n]) * 32 for n in (1, 2))
INFO = PartyInfo(
    "http://a:9001/", ((KEYS[0], "http://a:9001/"), (KEYS[1], "https://b.example:9001/x")), ("http://c:9001/",)
)


def test_an_info_is_read_as_it_was_written() -> None:
    assert PartyInfo.decode(INFO.encode()) == INFO
    assert PartyInfo.decode_json(INFO.encode_json()) == INFO
    assert INFO.encode()[:22] == encode_field(b"http://a:9001/")
    assert INFO.keys_of("http://a:9001/") == [KEYS[0]]


@pytest.mark.parametrize("cut", range(0, len(INFO.encode()), 5))
def test_an_info_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(DecodeError):
        PartyInfo.decode(INFO.encode()[:cut])


@pytest.mark.parametrize(
    "data",
    [
        bytes(MAX_INFO_BYTES + 1),
        encode_field(b"http://a:1/") + encode_number(MAX_ITEMS + 1),
        encode_field(b"http://a:1/") + encode_number(1) + encode_field(b"short key") + encode_field(b"http://a:1/"),
        encode_field(b"file:///etc/passwd") + bytes(16),
        encode_field(b"\xff") + bytes(16),
    ],
)
def test_other_infos_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        PartyInfo.decode(data)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"url": 1, "keys": [], "peers": []}', b'{"keys": [1]}'])
def test_other_json_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        PartyInfo.decode_json(data)


def test_urls_have_a_path() -> None:
    assert normal_url("http://a:9001") == normal_url("http://a:9001/") == "http://a:9001/"
    for url in (
        "",
        "a:9001",
        "ftp://a",
        "http://",
        "http://a:x",
        "http://a:99999",
        "http://a..b:1/",
        "http://a b",
        "http://a\r\nX: y",
        7,
    ):
        with pytest.raises(DecodeError):
            normal_url(url)
