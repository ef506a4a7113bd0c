"""`ophion password hash`: a bcrypt hash for the credentials file."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import bcrypt

from ophion.cli.command import Command, Session
from ophion.errors import CommandError
from ophion.runtime.options import option

COST = 10
_MOST_BYTES = 72


@dataclass(frozen=True, slots=True)
class HashOptions:
    """Options."""

    password: str = option("--password", help="The password to hash.", metavar="TEXT")


def hash_password(options: HashOptions, session: Session) -> int:
    """Prints the hash, without a newline where a script reads it."""
    password = options.password.encode()
    if len(password) > _MOST_BYTES:
        raise CommandError(f"The password has {len(password)} bytes; bcrypt takes no more than {_MOST_BYTES}.")
    if b"\0" in password:
        raise CommandError("The password holds a zero byte, which bcrypt does not take.")
    hashed = bcrypt.hashpw(password, bcrypt.gensalt(COST, prefix=b"2a")).decode()
    print(hashed, end="\n" if sys.stdout.isatty() else "")
    return 0


COMMANDS = (
    Command(
        "hash",
        "Hash a password for the credentials file of the JSON-RPC services.",
        hash_password,
        HashOptions,
        examples=("ophion password hash --password=MyPassword",),
    ),
)
