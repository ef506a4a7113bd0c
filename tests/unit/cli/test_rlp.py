"""Tests extra data of BFT genesis blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.cli.command import CommandSession
from ophion.cli.rlp import ExtraDataType, RlpOptions, decode, encode, extra_data, validators_of
from ophion.errors import CommandError, DecodeError
from ophion.runtime.options import LoadedConfig

IBFT, QBFT = ExtraDataType.IBFT_EXTRA_DATA, ExtraDataType.QBFT_EXTRA_DATA
TWO = ["be068f726a13c8d46c44be6ce9d275600e1735a4", "5ff6f4b66a46a2b2310a6f3a93aaddc0d9a1c193"]
FOUR = [
    "93917cadbace5dfce132b991732c6cda9bcc5b8a",
    "27a97c9aaf04f18f3014c32e036dd0ac76da5f18",
    "ce412f988377e31f4d0ff12d74df73b51c42d0ca",
    "98c1334496614aed49d2e81526d089f7264fed9c",
]
IBFT_TWO = f"0xf853a0{'00' * 32}ea94{TWO[0]}94{TWO[1]}808400000000c0"
QBFT_TWO = f"0xf84fa0{'00' * 32}ea94{TWO[0]}94{TWO[1]}c080c0"
SESSION = CommandSession(LoadedConfig(None, {}))


def run(tmp_path: Path, command: object, text: str, kind: ExtraDataType = IBFT) -> str:
    source, target = tmp_path / "in", tmp_path / "out" / "text"
    source.write_text(text)
    assert callable(command)
    assert command(RlpOptions(source=source, target=target, type=kind), SESSION) == 0
    return target.read_text()


@pytest.mark.parametrize(("kind", "expected"), [(IBFT, IBFT_TWO), (QBFT, QBFT_TWO)])
def test_two_validators_encode_to_the_published_text_and_back(
    tmp_path: Path, kind: ExtraDataType, expected: str
) -> None:
    text = f'["{TWO[0]}","0x{TWO[1].upper()}"]'
    assert run(tmp_path, encode, text, kind) == expected
    assert run(tmp_path, decode, f"{expected}\n", kind) == f'["0x{TWO[0]}", "0x{TWO[1]}"]'


@pytest.mark.parametrize(("kind", "head", "tail"), [(QBFT, "f87aa0", "c080c0"), (IBFT, "f87ea0", "808400000000c0")])
def test_four_validators_encode_to_the_published_text(kind: ExtraDataType, head: str, tail: str) -> None:
    encoded = extra_data([bytes.fromhex(address) for address in FOUR], kind).hex()
    assert encoded == f"{head}{'00' * 32}f854{''.join(f'94{address}' for address in FOUR)}{tail}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"An error occurred while trying to read the JSON data\."),
        (" \n", r"An error occurred while trying to read the JSON data\."),
        ("{", r"Unable to load the JSON data\. Please check JSON input format\. .* at line 1, column 2"),
        ("[" * 100_000, r"Unable to load the JSON data\. .*nested too deeply"),
        ("{}", r"Unable to map the JSON data with selected type\. .* found an object"),
        ("[1]", r"Unable to map the JSON data with selected type\. .* Item 0: expected an address, found a number"),
        ('["0x12"]', r"Unable to map the JSON data with selected type\. .* Item 0: "),
        ("[NaN]", r"Unable to load the JSON data\. .*NaN is not a JSON value"),
    ],
)
def test_bad_json_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CommandError, match=f"^{message}"):
        run(tmp_path, encode, text)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^Unable to read JSON file\. .*absent"):
        encode(RlpOptions(source=tmp_path / "absent", target=None, type=IBFT), SESSION)
    source = tmp_path / "in"
    source.write_text("[]")
    with pytest.raises(CommandError, match=r"^An error occurred while trying to write the RLP string\."):
        encode(RlpOptions(source=source, target=tmp_path, type=IBFT), SESSION)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0x", IBFT),
        ("zz", IBFT),
        ("0xc0", IBFT),
        (QBFT_TWO, IBFT),
        (IBFT_TWO, QBFT),
        (IBFT_TWO[:-2], IBFT),
        (IBFT_TWO + "00", IBFT),
    ],
)
def test_what_is_no_extra_data_of_this_kind_is_refused(tmp_path: Path, text: str, kind: ExtraDataType) -> None:
    with pytest.raises(CommandError, match="Unable to decode the RLP string with selected type|read the RLP string"):
        run(tmp_path, decode, text, kind)


@given(st.lists(st.binary(min_size=20, max_size=20), max_size=8), st.sampled_from(ExtraDataType))
def test_any_validators_survive_the_round_trip(validators: list[bytes], kind: ExtraDataType) -> None:
    assert validators_of(extra_data(validators, kind), kind) == validators


@given(st.binary(max_size=80), st.sampled_from(ExtraDataType))
def test_no_bytes_break_the_decoder(data: bytes, kind: ExtraDataType) -> None:
    try:
        validators_of(data, kind)
    except DecodeError as error:
        assert str(error)
