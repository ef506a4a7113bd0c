"""`ophion privacy keygen`: a key pair for the enclave."""

from __future__ import annotations

import sys
from pathlib import Path

from ophion.cli.command import Command, CommandSession
from ophion.cli.input_output import read_password
from ophion.enclave.encoding import base64_text
from ophion.enclave.keyfile import new_pair, public_file_of, write_pair
from ophion.errors import CommandError
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.operator_files import content_of
from ophion.runtime.options import Options, option


class KeygenOptions(Options):
    """Options: target file and password of `ophion privacy keygen`."""

    target: Path = option(
        "--to", default=Path("nodeKey.key"), help="File of the private key; the public key gets the suffix .pub."
    )
    asks: bool = option(
        "--password",
        default=False,
        help="Encrypt the private key with a password (argon2id), typed or read from standard input.",
    )
    password_file: Path | None = option("--password-file", default=None, help="File whose first line is the password.")


def keygen(options: KeygenOptions, session: CommandSession) -> int:
    """Write the private key and the public key to two files, and print the public key."""
    entropy = SystemEntropy()
    pair = new_pair(entropy)
    write_pair(options.target, pair, entropy, _password(options))
    print(base64_text(pair.public))
    print(f"Private key in {options.target}, public key in {public_file_of(options.target)}.", file=sys.stderr)
    return 0


def _password(options: KeygenOptions) -> bytes | None:
    if options.password_file is not None:
        try:
            lines = content_of(options.password_file).splitlines()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CommandError(f"Unable to read the password in {options.password_file}: {reason}") from None
        password = lines[0] if lines else b""
    elif not options.asks:
        return None
    else:
        password = read_password().encode()
    if not password:
        raise CommandError("The password is empty.")
    return password


KEYGEN = Command(
    "keygen",
    "Make a key pair for the enclave.",
    keygen,
    KeygenOptions,
    examples=(
        "ophion privacy keygen --to=nodeKey.key",
        "ophion privacy keygen --to=tenant.key --password-file=password",
    ),
)
