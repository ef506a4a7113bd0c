from __future__ import annotations

from pathlib import Path

import pytest

from ophion.cli.main import main
from ophion.testing.signing import DEV_KEYS, legacy_transaction


def test_senders_and_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = legacy_transaction(DEV_KEYS[0], 0)
    corpus = tmp_path / "corpus"
    corpus.write_text(f"# first\n0x{raw.hex()}\n\n0xzz\n0x00\n")
    assert main(["txparse", f"--corpus-file={corpus}"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"0x{DEV_KEYS[0].address.hex()}"
    assert [line.partition(" ")[0] for line in rest] == ["err:", "err:"]


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["txparse", f"--corpus-file={tmp_path / 'none'}"]) == 1
    assert "Unable to read" in capsys.readouterr().err
