"""Tests the targets of `ophion sql`. tests/integration/test_cli_export.py tests queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion import Chain
from ophion.cli.main import main

pytest.importorskip("duckdb", reason="the extra ophion[data] is not installed")
pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_target_that_cannot_be_written_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    Chain(tmp_path / "data").close()
    target = tmp_path / "missing" / "result"
    code = main(["sql", f"--data-path={tmp_path / 'data'}", f"--format={form}", f"--to={target}", "select 1"])
    assert code == 1
    assert capsys.readouterr().err == f"Unable to write {target}: No such file or directory.\n"
