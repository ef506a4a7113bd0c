"""Tests `ophion privacy keygen`."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest

from ophion.cli.main import main
from ophion.enclave.keyfile import read_pair


def test_a_pair_is_written_and_its_public_key_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nodeKey.key"
    assert main(["privacy", "keygen", f"--to={file}"]) == 0
    assert read_pair(file).public == b64decode(capsys.readouterr().out)
    assert main(["privacy", "keygen", f"--to={file}"]) == 1
    assert "never overwritten" in capsys.readouterr().err


def test_a_password_file_locks_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "password").write_text("secret\n")
    file = tmp_path / "nodeKey.key"
    assert main(["privacy", "keygen", f"--to={file}", f"--password-file={tmp_path / 'password'}"]) == 0
    assert read_pair(file, b"secret").public == b64decode(capsys.readouterr().out)
    (tmp_path / "password").write_text("")
    assert main(["privacy", "keygen", f"--to={tmp_path / 'b.key'}", f"--password-file={tmp_path}"]) == 1
    assert f"Unable to read the password in {tmp_path}: Is a directory\n" in capsys.readouterr().err
    assert main(["privacy", "keygen", f"--to={tmp_path / 'b.key'}", f"--password-file={tmp_path / 'password'}"]) == 1
    assert "The password is empty." in capsys.readouterr().err
