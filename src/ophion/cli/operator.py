"""`ophion operator generate-blockchain-config`: creates keys and a genesis file of a proof-of-authority network."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ophion.chainspec.genesis import parse_genesis
from ophion.cli.command import Command, CommandSession
from ophion.cli.input_output import kind_of_json, parse_json, read_input
from ophion.cli.plan_migration import PLAN_COMMAND
from ophion.cli.replaced_commands import OPERATOR_COMMANDS
from ophion.cli.rlp import ExtraDataType, extra_data
from ophion.cli.rolling_upgrade import ROLLING_UPGRADE_COMMAND
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError, DecodeError, OphionError
from ophion.native.crypto import PrivateKey, address_of
from ophion.node.node_key_file import new_key, write_text
from ophion.primitives.hexcodec import parse_data_lenient
from ophion.primitives.types import ZERO_HASH
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.options import Options, option

_MAX_NODES = 1000
_FIELD = 2**256 - 2**32 - 977
"""The prime of the field over which secp256k1 is defined."""
_KEYS = "keys"
"""Name of the folder of all keys, next to the genesis file."""
_ENGINES: dict[str, Callable[[Sequence[bytes]], bytes]] = {
    "ibft2": lambda validators: extra_data(validators, ExtraDataType.IBFT_EXTRA_DATA),
    "qbft": lambda validators: extra_data(validators, ExtraDataType.QBFT_EXTRA_DATA),
    "clique": lambda signers: bytes(32) + b"".join(signers) + bytes(65),
}
"""Functions that encode the first validators for the genesis block, by engine, in order of precedence."""


def _file_name(text: str) -> str:
    if not text or "/" in text or "\0" in text or text in (".", ".."):
        raise ValueError(f"'{text}' is not a file name")
    return text


class GenerateOptions(Options):
    """Options: input and output files of `ophion operator generate-blockchain-config`."""

    config_file: Path = option("--config-file", help="JSON file that describes the network.")
    target: Path = option("--to", help="Directory to write to; absent or empty.", metavar="DIRECTORY")
    genesis_name: str = option(
        "--genesis-file-name", default="genesis.json", help="Name of the genesis file.", parse=_file_name
    )
    private_name: str = option(
        "--private-key-file-name", default="key.priv", help="Name of the private key files.", parse=_file_name
    )
    public_name: str = option(
        "--public-key-file-name", default="key.pub", help="Name of the public key files.", parse=_file_name
    )


class NetworkNode(Struct, frozen=True):
    """A node of the new network. The private key is set only if this command created it."""

    public_key: bytes
    key: PrivateKey | None = None

    @property
    def address(self) -> bytes:
        return address_of(self.public_key)


def generate(options: GenerateOptions, session: CommandSession) -> int:
    """Create the files. All input is checked before the first file is written."""
    names = (options.genesis_name, options.private_name, options.public_name)
    if len(set(names)) < len(names) or options.genesis_name == _KEYS:
        raise CommandError("Output file paths must be unique.")
    _check_target(options.target)
    text = read_input(options.config_file, "Unable to read the network description.")
    description = parse_json(text, f"{options.config_file} is not valid JSON:")
    genesis = _member(description, "genesis", dict, "")
    nodes = _nodes(_member(_member(description, "blockchain", dict, ""), "nodes", dict, "blockchain."))
    genesis = _with_extra_data(genesis, sorted(node.address for node in nodes))
    for node in nodes:
        folder = options.target / _KEYS / f"0x{node.address.hex()}"
        if node.key is not None:
            write_text(folder / options.private_name, f"0x{node.key.secret().hex()}", mode=0o600)
        write_text(folder / options.public_name, f"0x{node.public_key.hex()}")
    write_text(options.target / options.genesis_name, json.dumps(genesis, indent=2, ensure_ascii=False))
    _warn(genesis)
    print(f"Wrote the genesis and {len(nodes)} {'key' if len(nodes) == 1 else 'keys'} to {options.target}")
    return 0


def _warn(genesis: dict[str, Any]) -> None:
    """Print warnings about the genesis file now; otherwise they appear only when a node starts."""
    try:
        parsed = parse_genesis(json.dumps(genesis).encode())
        engine_for(parsed.spec).check_genesis(parsed.header(ZERO_HASH))
    except OphionError as error:
        print(f"Warning: a node refuses this genesis: {error}", file=sys.stderr)


def _check_target(target: Path) -> None:
    try:
        if target.exists() and any(target.iterdir()):
            raise CommandError("Output directory must be empty.")
    except OSError as error:
        raise CommandError(f"The output directory {target} cannot be used: {error.strerror}") from error


def _nodes(nodes: dict[str, Any]) -> list[NetworkNode]:
    if _member(nodes, "generate", bool, "blockchain.nodes.", default=False):
        count = _member(nodes, "count", int, "blockchain.nodes.")
        if not 1 <= count <= _MAX_NODES:
            raise CommandError(f"blockchain.nodes.count must be between 1 and {_MAX_NODES}, not {count}")
        entropy = SystemEntropy()
        keys = [new_key(entropy) for _ in range(count)]
        return [NetworkNode(key.public_key, key) for key in keys]
    found = [
        _imported(item, position) for position, item in enumerate(_member(nodes, "keys", list, "blockchain.nodes."))
    ]
    if not found:
        raise CommandError("blockchain.nodes.keys is empty: a network needs at least one node")
    if len({node.public_key for node in found}) < len(found):
        raise CommandError("blockchain.nodes.keys names a key twice")
    return found


def _imported(item: Any, position: int) -> NetworkNode:
    place = f"blockchain.nodes.keys[{position}]"
    if not isinstance(item, str):
        raise CommandError(f"{place}: invalid key type: expected text, found {kind_of_json(item)}")
    try:
        key = parse_data_lenient(item, 64)
    except DecodeError as error:
        raise CommandError(f"{place}: invalid public key: {error}") from error
    if not _is_point(key):
        print(f"Warning: {place} is not a point of the curve: it has no private key", file=sys.stderr)
    return NetworkNode(key)


def _is_point(key: bytes) -> bool:
    x, y = int.from_bytes(key[:32], "big"), int.from_bytes(key[32:], "big")
    return max(x, y) < _FIELD and (y * y - x * x * x - 7) % _FIELD == 0


def _with_extra_data(genesis: dict[str, Any], validators: list[bytes]) -> dict[str, Any]:
    """Return the genesis with its validators in `extraData`, if the engine stores validators there."""
    config = _member(genesis, "config", dict, "genesis.", default={})
    engines = {key.lower() for key in config}
    engine = next((engine for engine in _ENGINES if engine in engines), None)
    # leave a Clique genesis unchanged if it contains its own extra data
    if engine is None or (engine == "clique" and any(key.lower() == "extradata" for key in genesis)):
        return genesis
    kept = {key: value for key, value in genesis.items() if key.lower() != "extradata"}
    return {**kept, "extraData": f"0x{_ENGINES[engine](validators).hex()}"}


def _member(value: Any, name: str, kind: type, place: str, default: Any = None) -> Any:
    """Return the value of a key, whose name is case-insensitive. Raises an error if the value has the wrong type."""
    if not isinstance(value, dict):
        raise CommandError(f"{place.removesuffix('.') or 'The top level'} must be an object, not {kind_of_json(value)}")
    found = next((value[key] for key in value if key.lower() == name.lower()), default)
    if found is None:
        raise CommandError(f"'{place}{name}' is missing")
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        wanted = {dict: "an object", list: "an array", int: "a whole number", bool: "a boolean"}[kind]
        raise CommandError(f"'{place}{name}' must be {wanted}, not {kind_of_json(found)}")
    return found


COMMANDS = (
    Command(
        "generate-blockchain-config",
        "Make node keys and a genesis file for a new IBFT 2.0, QBFT or Clique network.",
        generate,
        GenerateOptions,
        examples=("ophion operator generate-blockchain-config --config-file=network.json --to=network",),
    ),
    PLAN_COMMAND,
    ROLLING_UPGRADE_COMMAND,
    *OPERATOR_COMMANDS,
)
