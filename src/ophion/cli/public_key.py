"""`ophion public-key`: prints the node's public key or address. If the key file is missing, a key is created."""

from __future__ import annotations

from pathlib import Path

from ophion.cli.command import Command, CommandSession
from ophion.cli.input_output import write_output
from ophion.native.crypto import PrivateKey
from ophion.node.datadir import DataConfig
from ophion.node.foreign_data import refuse_foreign_data
from ophion.node.node_key_file import load_or_create_key
from ophion.runtime.options import Options, option


def _curve(text: str) -> str:
    if text.lower() != "secp256k1":
        raise ValueError(f"keys are of the curve secp256k1, not of '{text}'")
    return text.lower()


class KeyExportOptions(Options):
    """Options: target file and curve of `ophion public-key`."""

    target: Path | None = option("--to", default=None, help="File to write. (default: standard output)")
    curve: str = option(
        "--ec-curve", default="secp256k1", parse=_curve, hidden=True, help="Accepted for scripts of Besu: secp256k1."
    )


def _key(session: CommandSession) -> PrivateKey:
    data = session.part(DataConfig)
    if data.node_private_key_file is None and not data.key_file.exists():
        refuse_foreign_data(data.data_path)
    key, _ = load_or_create_key(data.key_file, password_file=data.node_private_key_password_file)
    return key


def export(options: KeyExportOptions, session: CommandSession) -> int:
    """Print the public key as 0x and 128 hex digits."""
    write_output(options.target, f"0x{_key(session).public_key.hex()}", "Unable to write the public key.")
    return 0


def export_address(options: KeyExportOptions, session: CommandSession) -> int:
    """Print the address as 0x and 40 hex digits."""
    write_output(options.target, f"0x{_key(session).address.hex()}", "Unable to write the address.")
    return 0


COMMANDS = (
    Command(
        "export",
        "Show the public key of the node.",
        export,
        KeyExportOptions,
        uses=(DataConfig,),
        examples=("ophion public-key export --data-path=data --to=node.pub",),
    ),
    Command(
        "export-address",
        "Show the address of the node.",
        export_address,
        KeyExportOptions,
        uses=(DataConfig,),
        examples=("ophion public-key export-address --node-private-key-file=node.key",),
    ),
)
