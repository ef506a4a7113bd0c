"""Errors have fields and a one-line message."""

from ophion.errors import ConfigError, DecodeError, InvalidBlock, InvalidHeader, OphionError, UnknownParent


def test_an_invalid_block_names_number_hash_rule_and_both_values() -> None:
    error = InvalidBlock("state root", got=b"\x01", expected=b"\x02", number=7, hash=b"\xab" * 32)
    assert str(error) == f"Invalid block at block number 7 (0x{'ab' * 32}): state root: got 0x01, expected 0x02"


def test_the_block_of_an_error_may_be_added_later() -> None:
    error = InvalidHeader("gas limit", got=5).at(3, b"\xcd")
    assert isinstance(error, InvalidHeader)
    assert str(error) == "Invalid header at block number 3 (0xcd): gas limit: 5"
    assert str(error.at(9, b"\xff")) == str(error)


def test_all_problems_of_a_configuration_are_in_its_message() -> None:
    assert str(ConfigError(["one", "two"])) == "one\ntwo"
    assert ConfigError("one").problems == ("one",)


def test_a_decode_error_names_the_position() -> None:
    assert str(DecodeError("too short", "header.nonce")) == "header.nonce: too short"


def test_a_missing_parent_is_transient() -> None:
    error = UnknownParent(9, b"\0" * 32, 3)
    assert error.transient
    assert str(error) == "Block 9 does not connect to the existing chain. Current chain head 3"
    assert isinstance(error, OphionError)
