"""Tests a port in use, with a real socket."""

from __future__ import annotations

import socket

import pytest

from ophion.runtime.port_in_use import is_taken, taken


def test_a_port_in_use_is_distinguished_from_other_errors() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, socket.socket() as second:
        with pytest.raises(OSError) as busy:
            second.bind(first.getsockname())
        assert is_taken(busy.value)
        with pytest.raises(OSError) as absent:
            second.bind(("192.0.2.1", 0))
        assert not is_taken(absent.value)


def test_the_words_say_what_to_do() -> None:
    assert taken() == (
        "Address already in use. Another program has this port: choose another one, or 0 for any that is free."
    )
    assert "choose another one with --p2p-port, or 0" in taken("--p2p-port")
