from __future__ import annotations

import pytest

from ophion.cli.main import main


@pytest.mark.parametrize("words", ["operator generate-log-bloom-cache", "storage revert-variables"])
def test_a_command_without_work_succeeds(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["besu", *words.split()]) == 0
    assert "nothing to" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        "operator x-backup-state",
        "operator x-restore-state",
        "storage trie-log count",
        "storage rocksdb usage",
        "blocks import --from=chain.rlp --run",
    ],
)
def test_a_replaced_command_says_what_replaces_it(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["besu", *words.split()]) == 1
    message = capsys.readouterr().err
    assert any(hint in message for hint in ("Use `ophion", "use it with", "Use --", "start the node with"))
