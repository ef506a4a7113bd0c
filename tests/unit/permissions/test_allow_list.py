"""Allowlists: changes apply completely or not at all, in memory and on disk."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ophion.errors import RulesError
from ophion.permissions.allow_list import AllowList, ListChanged
from ophion.permissions.allow_list_file import RulesFile
from ophion.permissions.list_requests import ACCOUNTS

A, B, C = (bytes([number]) * 20 for number in (1, 2, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "rules.toml"
    file.write_text(f'accounts-whitelist=["0x{A.hex()}"]')
    return file


@pytest.fixture
def permitted(path: Path) -> AllowList[bytes]:
    return AllowList(RulesFile(path, ACCOUNTS))


def test_changes_are_published_and_stored(permitted: AllowList[bytes], path: Path) -> None:
    received: list[ListChanged[bytes]] = []
    permitted.changed.listen(received.append)
    permitted.add([C, B])
    permitted.remove([A])
    assert list(permitted) == [C, B] == list(RulesFile(path, ACCOUNTS).read())
    assert received == [ListChanged((C, B), ()), ListChanged((), (A,))]


def test_a_change_is_all_or_nothing(permitted: AllowList[bytes], path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(RulesError, match="Cannot add an existing account to whitelist"):
        permitted.add([B, A])
    with pytest.raises(RulesError, match="Cannot remove an absent account from whitelist"):
        permitted.remove([A, B])
    assert list(permitted) == [A]
    assert path.read_bytes() == before


def test_what_cannot_be_written_is_reverted(permitted: AllowList[bytes], path: Path) -> None:
    path.chmod(0o444)
    with pytest.raises(RulesError, match="Unable to persist changes to whitelist configuration file. Changes reverted"):
        permitted.add([B])
    assert list(permitted) == [A]


def test_a_change_beside_an_edited_file_holds_in_memory(permitted: AllowList[bytes], path: Path) -> None:
    path.write_text("accounts-whitelist=[]")
    received: list[ListChanged[bytes]] = []
    permitted.changed.listen(received.append)
    with pytest.raises(RulesError, match="out of sync.  The changes have been applied, but not persisted to disk"):
        permitted.add([B])
    assert list(permitted) == [A, B]
    assert path.read_text() == "accounts-whitelist=[]"
    assert received == [ListChanged((B,), ())]


def test_a_read_only_file_is_a_warning(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.chmod(0o444)
    with caplog.at_level(logging.WARNING):
        AllowList(RulesFile(path, ACCOUNTS))
    assert "permission file is read-only" in caplog.text
    assert f"file={path}" in caplog.text
