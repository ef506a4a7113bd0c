"""`ophion rlp encode` and `ophion rlp decode`: the extra data of BFT genesis blocks.

The `extraData` of a BFT genesis lists the first validators. It is an RLP list of 32 bytes of vanity, the validators, a
vote, the round and the commit seals. In a genesis the last three items are empty. IBFT 2.0 writes the round as four
bytes and an absent vote as an empty string; QBFT writes the round as a number and an absent vote as an empty list.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from ophion.cli.command import Command, CommandSession
from ophion.cli.input_output import kind_of_json, parse_json, read_input, write_output
from ophion.errors import CommandError, DecodeError
from ophion.primitives import rlp
from ophion.primitives.hexcodec import parse_data_lenient
from ophion.runtime.options import Options, option

VANITY = bytes(32)


class ExtraDataType(Enum):
    """Type of extra data: the header format of IBFT 2.0 or QBFT."""

    IBFT_EXTRA_DATA = "ibft"
    QBFT_EXTRA_DATA = "qbft"


class RlpOptions(Options):
    """Options: input, output and type of extra data for `ophion rlp`."""

    source: Path | None = option("--from", default=None, help="File to read. (default: standard input)")
    target: Path | None = option("--to", default=None, help="File to write. (default: standard output)")
    type: ExtraDataType = option(
        "--type", default=ExtraDataType.IBFT_EXTRA_DATA, help="IBFT_EXTRA_DATA or QBFT_EXTRA_DATA.", metavar="TYPE"
    )


def extra_data(validators: Sequence[bytes], kind: ExtraDataType) -> bytes:
    """Return the extra data of a genesis block with these validators, in the order given."""
    if kind is ExtraDataType.IBFT_EXTRA_DATA:
        return rlp.encode([VANITY, list(validators), b"", bytes(4), []])
    return rlp.encode([VANITY, list(validators), [], 0, []])


def validators_of(data: bytes, kind: ExtraDataType) -> list[bytes]:
    """Return the validators in extra data. Raises `DecodeError` for data of another type."""
    items = rlp.decode_list(data)
    if len(items) != 5:
        raise DecodeError(f"expected a list of 5 items, found {len(items)}")
    vanity, validators, vote, round_number, seals = items
    if not isinstance(vanity, bytes) or len(vanity) != 32:
        raise DecodeError("the first item must be 32 bytes of vanity")
    if not isinstance(validators, list) or not isinstance(seals, list):
        raise DecodeError("validators and seals must be lists")
    if isinstance(round_number, list):
        raise DecodeError("the round must be a number")
    is_ibft = kind is ExtraDataType.IBFT_EXTRA_DATA
    if is_ibft and (len(round_number) != 4 or (isinstance(vote, bytes) and vote)):
        raise DecodeError("not IBFT extra data: the round must have 4 bytes, the vote must be absent or a list")
    if not is_ibft and (len(round_number) > 4 or isinstance(vote, bytes)):
        raise DecodeError("not QBFT extra data: the vote must be a list, the round a number")
    return [_address(item, position) for position, item in enumerate(validators)]


def _address(item: rlp.Item, position: int) -> bytes:
    if not isinstance(item, bytes) or len(item) != 20:
        raise DecodeError(f"validator {position} is not an address of 20 bytes")
    return item


def encode(options: RlpOptions, session: CommandSession) -> int:
    """Encode a JSON array of addresses as a line of hex."""
    text = read_input(options.source, "Unable to read JSON file.")
    if not text.strip():
        raise CommandError("An error occurred while trying to read the JSON data.")
    value = parse_json(text, "Unable to load the JSON data. Please check JSON input format.")
    encoded = extra_data(_addresses(value), options.type)
    write_output(options.target, f"0x{encoded.hex()}", "An error occurred while trying to write the RLP string.")
    return 0


def _addresses(value: Any) -> list[bytes]:
    failure = "Unable to map the JSON data with selected type. Please check JSON input format."
    if not isinstance(value, list):
        raise CommandError(f"{failure} Expected an array of addresses, found {kind_of_json(value)}.")
    addresses = []
    for position, item in enumerate(value):
        if not isinstance(item, str):
            raise CommandError(f"{failure} Item {position}: expected an address, found {kind_of_json(item)}.")
        try:
            addresses.append(parse_data_lenient(item, 20))
        except DecodeError as error:
            raise CommandError(f"{failure} Item {position}: {error}.") from error
    return addresses


def decode(options: RlpOptions, session: CommandSession) -> int:
    """Decode a line of hex into a JSON array of addresses."""
    text = read_input(options.source, "Unable to read RLP file.").strip()
    if not text:
        raise CommandError("An error occurred while trying to read the RLP string.")
    try:
        validators = validators_of(parse_data_lenient(text), options.type)
    except DecodeError as error:
        raise CommandError(f"Unable to decode the RLP string with selected type. {error}") from error
    listed = json.dumps([f"0x{address.hex()}" for address in validators])
    write_output(options.target, listed, "An error occurred while trying to write the JSON data.")
    return 0


COMMANDS = (
    Command(
        "encode",
        "Turn a JSON array of validator addresses into the extra data of a genesis block.",
        encode,
        RlpOptions,
        examples=(
            "ophion rlp encode --from=validators.json --to=extra-data.txt",
            "echo '[\"0xbe068f726a13c8d46c44be6ce9d275600e1735a4\"]' | ophion rlp encode --type=QBFT_EXTRA_DATA",
        ),
    ),
    Command(
        "decode",
        "Show the validators in the extra data of a genesis block.",
        decode,
        RlpOptions,
        examples=("ophion rlp decode --from=extra-data.txt --type=IBFT_EXTRA_DATA",),
    ),
)
