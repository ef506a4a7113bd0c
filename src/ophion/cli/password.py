"""`ophion password hash`: a bcrypt hash for the credentials file."""

from __future__ import annotations

import sys

import bcrypt

from ophion.cli.command import Command, CommandSession
from ophion.cli.input_output import read_password
from ophion.errors import CommandError
from ophion.runtime.options import Options, option

COST = 10
_MAX_BYTES = 72


class HashOptions(Options):
    """Options: the password that `ophion password hash` hashes."""

    password: str | None = option(
        "--password",
        default=None,
        help="The password to hash; other users of this machine may see it. (default: ask for it, or read the first "
        "line of standard input)",
        metavar="TEXT",
    )


def hash_password(options: HashOptions, session: CommandSession) -> int:
    """Print the hash. A newline follows only if standard output is a terminal."""
    password = _password(options).encode()
    if not password:
        raise CommandError("The password is empty.")
    if len(password) > _MAX_BYTES:
        raise CommandError(f"The password has {len(password)} bytes; bcrypt accepts at most {_MAX_BYTES}.")
    if b"\0" in password:
        raise CommandError("The password holds a zero byte, which bcrypt does not take.")
    hashed = bcrypt.hashpw(password, bcrypt.gensalt(COST, prefix=b"2a")).decode()
    print(hashed, end="\n" if sys.stdout.isatty() else "")
    return 0


def _password(options: HashOptions) -> str:
    if options.password is not None:
        print("Warning: a password on the command line is seen by others on this machine.", file=sys.stderr)
        return options.password
    return read_password()


COMMANDS = (
    Command(
        "hash",
        "Hash a password for the credentials file of the JSON-RPC services.",
        hash_password,
        HashOptions,
        examples=("ophion password hash", "ophion password hash < password-file"),
    ),
)
