"""Compares JSON outlines and WebSocket frames with other implementations."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.events import BytesMessage, Message, Ping, TextMessage
from wsproto.frame_protocol import FrameProtocol

from ophion.native.messages import FrameReader, PlainRequests, json_outline

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


def is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def count(value: Any) -> int:
    """Count the values and keys of a JSON value."""
    if isinstance(value, list):
        return 1 + sum(map(count, value))
    if isinstance(value, dict):
        return 1 + sum(1 + count(member) for member in value.values())
    return 1


@given(JSON)
def test_an_outline_counts_what_a_parser_makes(value: Any) -> None:
    for text in (orjson.dumps(value), json.dumps(value, indent=1).encode("utf-8", "surrogatepass")):
        if not is_json(text):
            continue  # the text is not valid JSON, because it contains a lone surrogate
        outline = json_outline(text, 3)
        assert outline is not None
        assert outline.values == count(value)
        assert (outline.is_batch, outline.is_request) == (isinstance(value, list), isinstance(value, dict))
        if isinstance(value, list):
            assert outline.count == len(value)
            places = [outline.member(position) for position in range(min(3, len(value)))]
            members = [(orjson.loads(text[start:end]), values) for start, end, values in places]
            assert members == [(member, count(member)) for member in value[:3]]


@given(st.binary(max_size=60) | st.text('[]{},:"\\u0123abcdefntrl-+.E \t', max_size=60).map(str.encode))
def test_an_outline_and_the_parser_agree_on_what_is_json(text: bytes) -> None:
    outline = json_outline(text, 100)
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        assert outline is None or "number" in str(error), "a number beyond all measure is one in form"
    else:
        assert outline is not None


@given(JSON, st.lists(st.integers(0, 200), max_size=3), st.binary(max_size=3))
def test_they_agree_on_broken_texts_too(value: Any, places: list[int], noise: bytes) -> None:
    text = bytearray(orjson.dumps(value))
    for place in places:
        at = place % len(text)
        text[at : at + 1] = noise
        if not text:
            return
    test_an_outline_and_the_parser_agree_on_what_is_json.hypothesis.inner_test(bytes(text))  # type: ignore[attr-defined]


@given(st.permutations(["id", "method", "params", "jsonrpc"]), JSON)
def test_the_parts_of_a_request_are_where_they_stand(order: list[str], value: Any) -> None:
    text = orjson.dumps(dict.fromkeys(order, value))
    outline = json_outline(text, 0)
    assert outline is not None
    for place in (outline.id, outline.method, outline.params):
        assert place is not None
        assert orjson.loads(text[place[0] : place[1]]) == value


def test_long_texts_are_outlined_all_the_same() -> None:
    text = b"[" + b",".join([b'{"a":[1,2,"\\u00e9"]}'] * 20_000) + b"]"
    outline = json_outline(text, 5)
    assert outline is not None
    assert (outline.count, outline.values) == (20_000, 120_001)
    assert outline.member(4) == (85, 105, 6)
    with pytest.raises(IndexError):
        outline.member(5)
    assert json_outline(text[:-1], 5) is None


# --- frames --------------------------------------------------------------------------------------


MESSAGES = st.lists(
    st.one_of(
        st.text(max_size=200).map(lambda text: TextMessage(data=text)),
        st.binary(max_size=70_000).map(lambda data: BytesMessage(data=data)),
        st.binary(max_size=125).map(lambda payload: Ping(payload=payload)),
    ),
    max_size=8,
)


def encoded(protocol: FrameProtocol, event: Any, cuts: list[int]) -> bytes:
    """Encode an event with wsproto; messages may be fragmented."""
    if isinstance(event, Ping):
        return bytes(protocol.ping(bytes(event.payload)))
    assert isinstance(event, Message)
    data, parts = event.data, []
    for cut in cuts:
        parts.append(data[:cut])
        data = data[cut:]
    frames = [protocol.send_data(part, fin=False) for part in parts]
    return b"".join(map(bytes, [*frames, protocol.send_data(data, fin=True)]))


@given(MESSAGES, st.lists(st.integers(0, 300), max_size=3), st.integers(1, 5000))
def test_what_wsproto_sends_arrives(events: list[Any], cuts: list[int], size: int) -> None:
    protocol = FrameProtocol(client=True, extensions=[])
    data = b"".join(encoded(protocol, event, cuts) for event in events)
    reader, found, pings = FrameReader(1 << 20, 1 << 20), list[tuple[int, bytes]](), 0
    for begin in range(0, len(data), size):
        part, position = data[begin : begin + size], 0
        while position < len(part):
            position, some, controls, fault = reader.read(part, position, 2)
            assert fault is None
            found += some
            pings += controls
    wanted = [
        (1, event.data.encode()) if isinstance(event, TextMessage) else (2, bytes(event.data))
        for event in events
        if not isinstance(event, Ping)
    ]
    assert [one for one in found if one[0] != 9] == wanted
    assert pings == sum(isinstance(event, Ping) for event in events)
    assert reader.held_bytes == 0


@given(st.binary(max_size=300), st.integers(1, 50))
def test_no_bytes_make_a_reader_fail(data: bytes, size: int) -> None:
    reader = FrameReader(100, 150)
    for begin in range(0, len(data), size):
        position, _, _, fault = reader.read(data[begin : begin + size], 0, 1 << 20)
        assert position == len(data[begin : begin + size])
        assert fault in (None, 1002, 1007, 1008, 1009)
        assert reader.held_bytes <= 300


@pytest.mark.parametrize("code", [1000, 1011, 3000, 4999])
def test_a_close_frame_has_its_code(code: int) -> None:
    protocol = FrameProtocol(client=True, extensions=[])
    assert FrameReader(10, 10).read(bytes(protocol.close(code, "bye")), 0, 5)[1] == [(8, code.to_bytes(2, "big"))]


SENT = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": ["0x02ff"]}


ASKED = {"jsonrpc": "2.0", "id": 7, "method": "eth_getBlockByNumber", "params": ["latest", False]}

CALL = {"jsonrpc": "2.0", "id": 8, "method": "eth_call", "params": [{"to": "0x01", "data": "0x"}, "latest"]}


read = PlainRequests().read


def test_a_plain_request_is_read() -> None:
    assert read(json.dumps(CALL).encode()) == (b"8", "eth_call", CALL["params"])
    assert read(json.dumps(ASKED).encode()) == (b"7", "eth_getBlockByNumber", ["latest", False])
    assert read(json.dumps(ASKED | {"params": []}).encode()) == (b"7", "eth_getBlockByNumber", [])


def test_the_transaction_of_one_that_sends_it_is_read_to_its_bytes() -> None:
    for text in (json.dumps(SENT), json.dumps(SENT, separators=(",", ":")), json.dumps(dict(reversed(SENT.items())))):
        assert read(text.encode()) == (b"1", "eth_sendRawTransaction", b"\x02\xff")
    other = SENT | {"method": "eth_sign"}
    assert read(json.dumps(other).encode()) == (b"1", "eth_sign", ["0x02ff"])


@given(
    st.sampled_from([SENT, ASKED, CALL]),
    st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "other"]), JSON, max_size=2),
    st.sampled_from([None, 0, 1]),
    st.binary(max_size=2),
    st.integers(0, 120),
    st.integers(0, 3),
)
def test_outlines_agree_with_a_json_parser(
    usual: dict[str, Any], changes: dict[str, Any], indent: int | None, noise: bytes, position: int, cut: int
) -> None:
    text = json.dumps(usual | changes, indent=indent).encode()
    text = text[:position] + noise + text[position + cut :]
    found = read(text)
    if found is None:
        return
    assert type(found) is tuple
    message = orjson.loads(text)
    id_text, method, params = found
    assert type(message["id"]) is int
    assert (b"%d" % message["id"], message["method"]) == (id_text, method)
    if type(params) is bytes:
        assert method == "eth_sendRawTransaction"
        [parameter] = message["params"]
        assert parameter[:2] == "0x"
        assert bytes.fromhex(parameter[2:]) == params
    else:
        assert message["params"] == params
        assert all(type(one) in (str, bool, dict) for one in params)


@given(st.text('{}[]:,"\\\\ ab1\u00e9\x00', max_size=24))
def test_objects_are_parsed_as_by_a_json_parser(inner: str) -> None:
    text = b'{"id":1,"method":"eth_call","params":[{"to":"0x%b"}]}' % inner.encode()
    found = read(text)
    if type(found) is tuple:
        assert found[2] == orjson.loads(text)["params"]
