"""Commands of Besu that Ophion does not need. Each command prints its replacement in Ophion."""

from __future__ import annotations

from collections.abc import Sequence

from ophion.cli.command import Command, CommandSession, NoOptions
from ophion.errors import CommandError


def unneeded(family: str, name: str, sentence: str) -> Command:
    """Return a command that prints `sentence` and succeeds. The sentence says why Ophion does not need the command."""

    def run(options: NoOptions, session: CommandSession) -> int:
        print(sentence)
        return 0

    return Command(
        name, f"Accepted for scripts of Besu. {sentence}", run, words="", examples=(f"ophion {family} {name}",)
    )


def replaced(family: str, name: str, sentence: str) -> Command:
    """Return a command that fails with `sentence`. The sentence names the replacement in Ophion."""

    def run(options: NoOptions, session: CommandSession) -> int:
        raise CommandError(f"{name} is a command of Besu. {sentence}")

    return Command(name, f"Not available. {sentence}", run, words="", examples=(f"ophion {family} {name}",))


OPERATOR_COMMANDS: Sequence[Command] = (
    unneeded("operator", "generate-log-bloom-cache", "Log queries need no cache, so there is nothing to generate."),
    replaced(
        "operator", "x-backup-state", "Use `ophion storage backup --to=FOLDER`, which also copies a running node."
    ),
    replaced(
        "operator", "x-restore-state", "A backup is a data path: use it with --data-path=FOLDER, or copy it back."
    ),
)
STORAGE_COMMANDS: Sequence[Command] = (
    unneeded("storage", "revert-variables", "The database of Ophion has one version, so there is nothing to revert."),
    unneeded("storage", "revert-metadata", "The database of Ophion has one version, so there is nothing to revert."),
    replaced("storage", "trie-log", "The state is stored without trie logs. Use --state-history to prune it."),
    replaced("storage", "rocksdb", "The database is LMDB. Use `ophion storage usage` for its size."),
    replaced(
        "storage", "prune-pre-merge-blocks", "Private networks keep all blocks. Use --state-history to prune the state."
    ),
)
