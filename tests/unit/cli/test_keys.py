"""Tests `ophion keys` and nodes with encrypted keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.cli.command import CommandSession, NoOptions
from ophion.cli.keys import (
    DecryptOptions,
    EncryptOptions,
    PasswordOptions,
    decrypt_key,
    encrypt_key,
    list_keys,
    show_address,
)
from ophion.errors import CommandError, KeyFileError
from ophion.node.datadir import DataConfig
from ophion.node.node_key_file import load_key
from ophion.runtime.options import LoadedConfig
from ophion.testing.signing import DEV_KEYS

SECRET, ADDRESS = DEV_KEYS[0].secret().hex(), "0x" + DEV_KEYS[0].address.hex()  # this key is a published test key
FAST = 1 << 12


def session(*words: Path) -> CommandSession:
    return CommandSession(LoadedConfig(None, {}), tuple(str(word) for word in words))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Return the paths of a plain key file, an encrypted key file and a password file."""
    plain, encrypted, password = tmp_path / "key", tmp_path / "node.json", tmp_path / "password"
    plain.write_text(SECRET)
    password.write_text("secret words\n")
    encrypt_key(EncryptOptions(password_file=password, target=encrypted, scrypt_n=FAST), session(plain))
    return plain, encrypted, password


def test_a_key_is_encrypted_and_decrypted(
    files: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, encrypted, password = files
    assert encrypted.stat().st_mode & 0o777 == 0o600
    assert SECRET not in encrypted.read_text()
    again = tmp_path / "again"
    assert decrypt_key(DecryptOptions(password_file=password, target=again), session(encrypted)) == 0
    assert load_key(again).secret().hex() == SECRET
    capsys.readouterr()
    assert show_address(PasswordOptions(password_file=password), session(encrypted)) == 0
    assert capsys.readouterr().out == f"{ADDRESS}\n"
    assert list_keys(NoOptions(), session(tmp_path)) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in listed] == [[ADDRESS, "plain"], [ADDRESS, "plain"], [ADDRESS, "encrypted"]]


def test_a_node_reads_an_encrypted_key(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    _, encrypted, password = files
    config = DataConfig(node_private_key_file=encrypted, node_private_key_password_file=password)
    assert list(config.problems()) == []
    assert load_key(encrypted, password).secret().hex() == SECRET
    wrong = tmp_path / "wrong"
    wrong.write_text("other words")
    with pytest.raises(KeyFileError, match=r"Unable to decrypt .*: the password is wrong\."):
        load_key(encrypted, wrong)
    with pytest.raises(KeyFileError, match="is encrypted. Name a file with its password"):
        load_key(encrypted)
    missing = DataConfig(node_private_key_file=encrypted, node_private_key_password_file=tmp_path / "none")
    assert [problem for problem in missing.problems() if "Unable to read the password file" in problem]
    encrypted.write_text('{"version": 2}')
    assert [problem for problem in config.problems() if "only version 3" in problem]


def test_wrong_use_is_one_clear_error(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    plain, encrypted, password = files
    new = tmp_path / "new"
    for options, words, reason in (
        (EncryptOptions(password_file=password, target=plain), (plain,), "exists"),
        (EncryptOptions(password_file=password, target=new), (encrypted,), "encrypted already"),
        (EncryptOptions(password_file=password, target=new), (), "Name one key file"),
        (EncryptOptions(password_file=password, target=new, scrypt_n=5), (plain,), "power of two"),
    ):
        with pytest.raises(CommandError, match=reason):
            encrypt_key(options, session(*words))
    with pytest.raises(CommandError, match="not encrypted"):
        decrypt_key(DecryptOptions(password_file=password, target=new), session(plain))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CommandError, match="No key file was found"):
        list_keys(NoOptions(), session(empty))
    assert not new.exists()
