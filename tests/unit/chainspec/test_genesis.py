"""Tests genesis files: keys and the spellings of their values, the genesis header, clear errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.chainspec.genesis import Genesis, check_stored, parse_genesis
from ophion.errors import GenesisError
from ophion.primitives.types import EMPTY_REQUESTS_HASH, EMPTY_TRIE_ROOT
from tests.conftest import DATA

ADDRESS = "fe3b557e8fb62b89f4916b721be55ceb828dbd73"


def document(config: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    return {"config": {"ethash": {}, **(config or {})}, "difficulty": "0x1", "gasLimit": "0x1388", **members}


def genesis(config: dict[str, Any] | None = None, **members: Any) -> Genesis:
    return parse_genesis(json.dumps(document(config, **members)))


def test_defaults_are_zero_and_empty() -> None:
    header = genesis().header(b"\x01" * 32)
    assert (header.difficulty, header.gas_limit, header.timestamp, header.number) == (1, 5000, 0, 0)
    assert (header.nonce, header.mix_hash, header.parent_hash, header.coinbase) == (
        bytes(8),
        bytes(32),
        bytes(32),
        bytes(20),
    )
    assert (header.extra_data, header.state_root, header.base_fee_per_gas) == (b"", b"\x01" * 32, None)


@pytest.mark.parametrize(("value", "number"), [(5000, 5000), ("5000", 5000), ("0x1388", 5000), ("0X1388", 5000)])
def test_numbers_have_several_forms(value: Any, number: int) -> None:
    result = genesis(gasLimit=value, timestamp=value, difficulty=value)
    assert (result.gas_limit, result.timestamp, result.difficulty) == (number, number, number)


@pytest.mark.parametrize(("value", "nonce"), [("0x42", 0x42), ("42", 0x42), (66, 66), ("0x123123123123123f", None)])
def test_the_nonce_is_hexadecimal(value: Any, nonce: int | None) -> None:
    assert genesis(nonce=value).nonce == (nonce if nonce is not None else 0x123123123123123F).to_bytes(8, "big")


def test_gas_target_is_another_name_of_the_gas_limit() -> None:
    given = document()
    del given["gasLimit"]
    assert parse_genesis(json.dumps({**given, "gasTarget": "0x2000"})).gas_limit == 0x2000


@pytest.mark.parametrize("name", ["difficulty", "gasLimit"])
def test_required_members_are_asked_for_by_name(name: str) -> None:
    given = document()
    del given[name]
    with pytest.raises(GenesisError, match=f"^Invalid genesis block configuration, missing value for '{name}'$"):
        parse_genesis(json.dumps(given))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"difficulty": "0xgg"}, "Invalid difficulty in genesis block configuration: 0xgg"),
        ({"difficulty": {}}, "Invalid difficulty in genesis block configuration: {}"),
        ({"gasLimit": "lots"}, "Invalid gasLimit in genesis block configuration: lots"),
        ({"gasLimit": 2**63}, "must fit 63 bits"),
        ({"nonce": "0x" + "f" * 17}, "Invalid nonce"),
        ({"extraData": "0x1"}, "Invalid extraData in genesis block configuration: 0x1"),
        ({"extraData": 5}, "Invalid extraData"),
        ({"mixHash": "0x12"}, "Invalid mixHash"),
        ({"parentHash": "zz"}, "Invalid parentHash"),
        ({"coinbase": "0x" + "1" * 41}, "Invalid coinbase"),
        ({"timestamp": "yesterday"}, "Invalid timestamp"),
        ({"number": "0x1"}, "Invalid number"),
        ({"gasUsed": 5}, "Invalid gasUsed"),
        ({"excessBlobGas": "0xffffffffffffffff"}, "Invalid excessBlobGas"),
        ({"baseFeePerGas": -1}, "Invalid baseFeePerGas"),
        ({"alloc": []}, "Invalid alloc"),
        ({"alloc": {"0x1g": {}}}, "Invalid alloc in genesis block configuration: 0x1g"),
        ({"alloc": {ADDRESS: 5}}, f"Invalid alloc.{ADDRESS}"),
        ({"alloc": {ADDRESS: {"balance": "much"}}}, f"Invalid alloc.{ADDRESS}.balance"),
        ({"alloc": {ADDRESS: {"balance": 2**256}}}, "must fit 256 bits"),
        ({"alloc": {ADDRESS: {"nonce": []}}}, f"Invalid alloc.{ADDRESS}.nonce"),
        ({"alloc": {ADDRESS: {"code": "0x1"}}}, f"Invalid alloc.{ADDRESS}.code"),
        ({"alloc": {ADDRESS: {"storage": []}}}, f"Invalid alloc.{ADDRESS}.storage"),
        ({"alloc": {ADDRESS: {"storage": {"0x" + "1" * 65: "0x1"}}}}, f"Invalid alloc.{ADDRESS}.storage"),
        ({"alloc": {ADDRESS: {"storage": {"0x1": "zz"}}}}, f"Invalid alloc.{ADDRESS}.storage"),
        ({"alloc": {ADDRESS: {}, "0x" + ADDRESS: {}}}, "the account appears twice"),
        ({"alloc": {ADDRESS: {"storage": {"0x1": "0x1", "0x01": "0x2"}}}}, "the slot appears twice"),
    ],
)
def test_a_wrong_member_is_named(members: dict[str, Any], message: str) -> None:
    with pytest.raises(GenesisError) as caught:
        genesis(**members)
    assert message in str(caught.value)


ENTRY = '{"config": {"ethash": {}, "note": 1, "note": 2}, "difficulty": 1, "gasLimit": 5000, "alloc": {"%s": {%s}}}'


def test_accounts_with_several_comments_are_read_with_a_warning() -> None:
    result = parse_genesis(ENTRY % (ADDRESS, '"comment": "one", "balance": "7", "Comment": "two", "comment": "three"'))
    assert [account.balance for account in result.accounts] == [7]
    assert result.warnings == (
        "Members that appear twice in one object are ignored: note, comment",
        "Unknown members of the genesis file are ignored: config.note",
    )


@pytest.mark.parametrize(
    "entry",
    [
        '"balance": "7", "Balance": "7"',
        '"nonce": "0x1", "nonce": "0x2"',
        '"code": "0x", "code": "0x"',
        '"storage": {}, "storage": {}',
        '"storage": {"0xA": "0x1", "0xa": "0x2"}',
        f'}}, "{ADDRESS}": {{',
    ],
)
def test_what_an_account_has_twice_is_refused(entry: str) -> None:
    with pytest.raises(GenesisError, match="appears twice in one object"):
        parse_genesis(ENTRY % (ADDRESS, entry))


def test_the_config_must_be_an_object() -> None:
    with pytest.raises(GenesisError, match="Invalid config in genesis block configuration"):
        parse_genesis('{"config": [], "difficulty": 1, "gasLimit": 5000}')


def test_accounts_have_balance_nonce_code_and_storage_in_several_forms() -> None:
    result = genesis(
        alloc={
            "0x" + ADDRESS.upper(): {
                "balance": "90000000000000000000000",
                "nonce": "0x1",
                "code": "6001",
                "storage": {"0x3": "0x07", "5": "0"},
                "privateKey": "a public test key",
                "comment": "ignored",
            },
            "00" * 20: {"balance": "0xad78ebc5ac6200000"},
        }
    )
    first, second = result.accounts
    assert first.address == bytes.fromhex(ADDRESS)
    assert (first.balance, first.nonce, first.code) == (90000 * 10**18, 1, b"\x60\x01")
    assert first.storage == (((3).to_bytes(32, "big"), (7).to_bytes(32, "big")),)
    assert second.balance == 200 * 10**18
    assert result.warnings == ()


def test_unknown_members_give_one_warning_that_names_them_all() -> None:
    result = genesis({"flavour": 1, "clique": {"colour": 2}}, size=3)
    (warning,) = result.warnings
    assert all(name in warning for name in ("size", "config.flavour", "config.clique.colour"))


@pytest.mark.parametrize("engine", ["ibft2", "qbft"])
def test_members_that_a_bft_genesis_must_have_are_asked_for(engine: str) -> None:
    mark = "0x63746963616c2062797a616e74696e65206661756c7420746f6c6572616e6365"
    bft = {"config": {engine: {}}, "gasLimit": "0x1388"}
    usual = {"nonce": "0x0", "difficulty": "0x1", "mixHash": mark}
    assert parse_genesis(json.dumps(bft | usual)).warnings == ()
    for member, other in (("nonce", "0x1"), ("difficulty", "0x2"), ("mixHash", "0x" + "00" * 32)):
        (warning,) = parse_genesis(json.dumps(bft | usual | {member: other})).warnings
        assert f"a {engine} network should have {member} {usual[member]};" in warning
    (warning,) = parse_genesis(json.dumps(bft | {"difficulty": "0x5", "nonce": "0x1"})).warnings
    assert f"nonce 0x0, difficulty 0x1, mixHash {mark};" in warning


def test_members_of_other_clients_are_known() -> None:
    config = {"eip150Hash": "0x00", "eip155Block": 0, "terminalTotalDifficultyPassed": True, "daoForkSupport": True}
    assert genesis(config, number="0x0", gasUsed="0x0", parentHash="0x" + "00" * 32).warnings == ()


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({"londonBlock": 1}, 15),
        ({"londonBlock": 0}, 16),
        ({"shanghaiTime": 0}, 17),
        ({"cancunTime": 0}, 20),
        ({"pragueTime": 0}, 21),
        ({"osakaTime": 0}, 21),
        ({"shanghaiTime": 1}, 15),
    ],
)
def test_the_header_is_as_long_as_the_active_forks_ask(config: dict[str, Any], fields: int) -> None:
    header = genesis(config).header(bytes(32))
    assert len(header.encoded_fields(b"")) == fields
    if fields == 21:
        assert (header.withdrawals_root, header.requests_hash) == (EMPTY_TRIE_ROOT, EMPTY_REQUESTS_HASH)
        assert header.parent_beacon_block_root == bytes(32)


def test_a_time_fork_counts_from_the_timestamp_of_genesis() -> None:
    assert genesis({"shanghaiTime": 100}, timestamp=100).header(bytes(32)).withdrawals_root is not None


def test_the_base_fee_of_a_london_genesis_is_one_gwei_unless_given() -> None:
    assert genesis({"londonBlock": 0}).header(bytes(32)).base_fee_per_gas == 10**9
    assert genesis({"londonBlock": 0, "zeroBaseFee": True}).header(bytes(32)).base_fee_per_gas == 10**9
    assert genesis({"londonBlock": 0}, baseFeePerGas="0x7").header(bytes(32)).base_fee_per_gas == 7
    assert genesis({"londonBlock": 5}, baseFeePerGas="0x7").spec.initial_base_fee == 7


def test_blob_fields_may_be_given() -> None:
    header = genesis({"cancunTime": 0}, excessBlobGas="0x20000", blobGasUsed="0x40000").header(bytes(32))
    assert (header.excess_blob_gas, header.blob_gas_used) == (0x20000, 0x40000)


def test_a_stored_genesis_that_differs_is_refused_with_both_hashes() -> None:
    check_stored(b"\x01" * 32, b"\x01" * 32)
    with pytest.raises(GenesisError, match="^Supplied genesis block does not match stored chain data") as caught:
        check_stored(b"\x01" * 32, b"\x02" * 32)
    assert "01" * 32 in str(caught.value)
    assert "02" * 32 in str(caught.value)


def test_the_public_genesis_of_the_sample_chain_is_read() -> None:
    result = parse_genesis((DATA / "original-chain" / "genesis.json").read_bytes())
    assert (result.difficulty, result.timestamp, len(result.accounts)) == (0x20000, 0x54C98C81, 1)


keys = st.sampled_from(
    ["config", "difficulty", "gasLimit", "nonce", "alloc", "extraData", "mixHash", "timestamp", "coinbase", "ethash"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("0x1"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys | st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(keys, values, max_size=8))
def test_any_document_is_a_genesis_or_one_clear_error(value: dict[str, Any]) -> None:
    for candidate in (value, document() | value, document(alloc={ADDRESS: value})):
        try:
            parse_genesis(json.dumps(candidate))
        except GenesisError as error:
            assert "\n" not in str(error)
