from __future__ import annotations

from pathlib import Path

import pytest

from ophion.native.crypto import PrivateKey
from ophion.native.wire import WireError
from ophion.peers.discovery.node_record import LocalRecord, Record
from ophion.primitives import rlp
from ophion.runtime.clock import ManualClock
from tests.data.wire.vectors import vector

KEY = PrivateKey(bytes.fromhex("b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291"))
ENTRY = rlp.encode([[b"\xde\xad\xbe\xef", 7]])


def test_the_vector_of_the_reference() -> None:
    record = Record.read(vector("record"))
    assert record.node_id == KEY.public_key
    assert record.seq == 1
    assert record.pairs[b"udp"] == rlp.encode_int(30303)
    assert record.tcp_port is None
    assert record.chain is None


def test_a_record_says_where_and_which_chain() -> None:
    local = LocalRecord(KEY, ManualClock())
    local.update("10.0.0.1", 30303, 30304, ENTRY)
    record = Record.read(local.encoded)
    assert record.tcp_port == 30303
    assert record.chain == [b"\xde\xad\xbe\xef", b"\x07"]
    assert record.pairs[b"ip"] == rlp.encode_bytes(bytes([10, 0, 0, 1]))
    assert local.text.startswith("enr:-")
    assert len(local.encoded) <= 300


def test_the_number_grows_with_every_change_and_only_then(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "node-record"
    local = LocalRecord(KEY, clock, path)
    local.update("10.0.0.1", 1, 1, None)
    first = local.seq
    local.update("10.0.0.1", 1, 1, None)
    assert local.seq == first
    local.update("::1", 1, 1, ENTRY)
    second = local.seq
    assert second > first
    again = LocalRecord(KEY, clock, path)
    again.update("::1", 1, 1, ENTRY)
    assert (again.seq, again.encoded) == (second, local.encoded)
    again.update("::1", 2, 2, ENTRY)
    assert again.seq > second


def test_a_lost_file_does_not_turn_the_number_back(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "node-record"
    local = LocalRecord(KEY, clock, path)
    for port in range(1, 50):
        local.update("10.0.0.1", port, port, None)
    path.write_text("nonsense")
    clock.advance(1.0)
    again = LocalRecord(KEY, clock, path)
    again.update("10.0.0.1", 99, 99, None)
    assert again.seq > local.seq


def test_the_record_of_another_key_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "node-record"
    LocalRecord(KEY, ManualClock(), path).update("10.0.0.1", 1, 1, None)
    assert LocalRecord(PrivateKey(bytes(31) + b"\x01"), ManualClock(), path).seq == 0


def test_a_path_that_cannot_be_written_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    local = LocalRecord(KEY, ManualClock(), tmp_path / "missing" / "node-record")
    local.update("0.0.0.0", 1, 1, None)
    assert local.encoded
    assert "cannot write node record" in caplog.text


def test_garbage_is_no_record() -> None:
    for garbage in (b"", b"\xc0", vector("record")[:-1], b"\xff" * 100):
        with pytest.raises(WireError):
            Record.read(garbage)
