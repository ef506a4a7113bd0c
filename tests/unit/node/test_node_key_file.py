"""Tests key files that operators and other clients write."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ophion.errors import KeyFileError
from ophion.node.node_key_file import load_key, load_or_create_key, new_key, write_text

DIGITS = "8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"  # this key is a published test key
ADDRESS = "fe3b557e8fb62b89f4916b721be55ceb828dbd73"


@pytest.mark.parametrize("content", [DIGITS, f"0x{DIGITS}", f"0x{DIGITS}\n", f"{DIGITS.upper()}\r\n"])
def test_one_line_of_hex_is_a_key(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    assert load_key(path).address.hex() == ADDRESS


@pytest.mark.parametrize(
    "content", ["", "\n", "0x", DIGITS[:-1], DIGITS + "00", f"{DIGITS}\n{DIGITS}", "zz" * 32, DIGITS[:62] + " 3"]
)
def test_anything_else_is_one_clear_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    with pytest.raises(KeyFileError, match=r"^Supplied file does not contain valid key pair\."):
        load_key(path)


def test_a_number_that_is_no_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    for number in ("00" * 32, "ff" * 32):
        path.write_text(number)
        with pytest.raises(
            KeyFileError, match=rf"^Supplied file .* valid key pair\. \({path}: a number that is no key"
        ):
            load_key(path)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="Unable to read the private key file .*absent: No such file"):
        load_key(tmp_path / "absent")
    with pytest.raises(KeyFileError, match="Is a directory"):
        load_key(tmp_path)


def test_a_link_that_leads_nowhere_is_not_replaced_by_a_new_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.symlink_to(tmp_path / "unmounted" / "key")
    with pytest.raises(KeyFileError, match="Unable to read the private key file .*key: No such file"):
        load_or_create_key(path)
    assert path.is_symlink()


def test_a_missing_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "key"
    key, is_new = load_or_create_key(path)
    again, is_new_again = load_or_create_key(path)
    assert (is_new, is_new_again) == (True, False)
    assert key.address == again.address
    assert path.read_text() == f"0x{key.secret().hex()}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["key"]


class _Draws:
    """An entropy source whose first number is not a valid key."""

    def __init__(self) -> None:
        self._left = [bytes.fromhex(DIGITS), bytes(32)]

    def token(self, size: int) -> bytes:
        return self._left.pop()


def test_a_number_that_is_no_key_is_drawn_again() -> None:
    assert new_key(_Draws()).address.hex() == ADDRESS


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(KeyFileError, match="Unable to write .*plain"):
        write_text(tmp_path / "plain" / "key", "text")


def test_a_file_of_gigabytes_is_no_key(tmp_path: Path) -> None:
    with (tmp_path / "key").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(KeyFileError, match=r"/key: more than 1048576 bytes"):
        load_key(tmp_path / "key")
