"""Tests password hashes for the credentials file."""

from __future__ import annotations

import io

import bcrypt
import pytest

from ophion.cli.command import CommandSession
from ophion.cli.password import HashOptions, hash_password
from ophion.errors import CommandError
from ophion.runtime.options import LoadedConfig

SESSION = CommandSession(LoadedConfig(None, {}))


def test_a_hash_is_bcrypt_of_cost_ten_without_a_newline(capsys: pytest.CaptureFixture[str]) -> None:
    assert hash_password(HashOptions(password="pegasys"), SESSION) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("$2a$10$")
    assert len(printed) == 60
    assert bcrypt.checkpw(b"pegasys", printed.encode())


@pytest.mark.parametrize("password", ["x" * 73, "a\0b"])
def test_what_bcrypt_does_not_take_is_one_clear_error(password: str) -> None:
    with pytest.raises(CommandError):
        hash_password(HashOptions(password=password), SESSION)


@pytest.mark.parametrize("typed", ["", "\n", "\nsecond line\n"])
def test_nothing_is_no_password(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    with pytest.raises(CommandError, match="The password is empty"):
        hash_password(HashOptions(), SESSION)
    with pytest.raises(CommandError, match="The password is empty"):
        hash_password(HashOptions(password=""), SESSION)


def test_bytes_that_are_no_text_are_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\udcff\n"))
    with pytest.raises(CommandError, match=r"The password is not UTF-8\."):
        hash_password(HashOptions(), SESSION)


def test_a_password_may_come_from_standard_input_and_the_option_warns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("pegasys\nignored\n"))
    assert hash_password(HashOptions(), SESSION) == 0
    printed = capsys.readouterr()
    assert bcrypt.checkpw(b"pegasys", printed.out.encode())
    assert printed.err == ""
    hash_password(HashOptions(password="x"), SESSION)
    assert "seen by others" in capsys.readouterr().err
