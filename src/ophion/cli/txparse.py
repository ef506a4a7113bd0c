"""`ophion txparse`: prints the sender of each raw transaction, or the reason why the transaction is invalid, in Besu's
format.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ophion.cli.command import Command, CommandSession
from ophion.errors import CommandError
from ophion.native.transactions import decode_transactions
from ophion.runtime.options import Options, option


class TxParseOptions(Options):
    """Options: the file of raw transactions for `ophion txparse`."""

    corpus: Path | None = option(
        "--corpus-file", default=None, help="File with one transaction in hex per line. (default: standard input)"
    )


def txparse(options: TxParseOptions, session: CommandSession) -> int:
    """Print one line for each transaction; lines that start with # are skipped."""
    if options.corpus is None:
        _print(sys.stdin)
        return 0
    try:
        with options.corpus.open(errors="replace") as lines:
            _print(lines)
    except OSError as error:
        raise CommandError(f"Unable to read {options.corpus}: {error.strerror}") from None
    return 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        text = line.strip()
        if text and not text.startswith("#"):
            print(describe(text))


def describe(text: str) -> str:
    """Return the sender of a transaction, or `err: ` and the reason."""
    try:
        raw = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        return "err: not hexadecimal"
    [decoded] = decode_transactions([raw])
    return f"err: {decoded}" if isinstance(decoded, str) else f"0x{decoded.sender.hex()}"


COMMANDS = (
    Command(
        "txparse",
        "Print the sender of raw transactions, or why they are invalid.",
        txparse,
        TxParseOptions,
        examples=("ophion txparse --corpus-file=transactions.txt",),
    ),
)
