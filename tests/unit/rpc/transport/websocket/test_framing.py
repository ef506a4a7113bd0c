"""Tests frames that the node sends."""

from __future__ import annotations

from ophion.rpc.transport.websocket.framing import CloseCode, closing, pong, text_head


def test_heads_are_as_short_as_they_may_be() -> None:
    assert text_head(5) == b"\x81\x05"
    assert text_head(125) == b"\x81\x7d"
    assert text_head(126) == b"\x81\x7e\x00\x7e"
    assert text_head(65_535) == b"\x81\x7e\xff\xff"
    assert text_head(65_536) == b"\x81\x7f" + (65_536).to_bytes(8, "big")


def test_control_frames() -> None:
    assert pong(b"abc") == b"\x8a\x03abc"
    assert closing(None) == b"\x88\x00"
    assert closing(CloseCode.POLICY, "no") == b"\x88\x04\x03\xf0no"
