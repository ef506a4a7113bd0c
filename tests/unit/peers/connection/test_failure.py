"""Errors in handling a message end the connection with the right reason."""

from __future__ import annotations

import logging

import pytest

from ophion.errors import DecodeError, StorageError
from ophion.native.wire import WireError
from ophion.peers.connection.failure import ConnectionFailure, failure_of
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved


@pytest.mark.parametrize(
    ("error", "expected", "level"),
    [
        (PeerMisbehaved(DisconnectReason.USELESS, "why"), (DisconnectReason.USELESS, "why", True), None),
        (WireError("bad frame"), (DisconnectReason.BREACH, "bad frame", False), None),
        (DecodeError("bad list"), (DisconnectReason.BREACH, "bad list", True), None),
        (StorageError("full"), (DisconnectReason.SUBPROTOCOL, "internal error", True), logging.ERROR),
        (KeyError("x"), (DisconnectReason.SUBPROTOCOL, "internal error", True), logging.ERROR),
    ],
)
def test_the_reason_follows_the_error(
    error: Exception, expected: tuple[DisconnectReason, str, bool], level: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert failure_of(error, "peer") == ConnectionFailure(*expected)
    assert [record.levelno for record in caplog.records] == ([] if level is None else [level])
