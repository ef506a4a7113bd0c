"""Tests private transactions, their groups and markers: the published vectors (privacy.md 16)."""

from __future__ import annotations

from base64 import b64decode

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.native.crypto import keccak256
from ophion.native.exceptions import NativeError
from ophion.native.privacy import (
    decode_private_transaction,
    decode_private_transactions,
    private_contract_address,
    sign_markers,
    sign_private_transaction,
)
from ophion.native.transactions import decode_transactions
from ophion.primitives import rlp
from ophion.testing.private_transactions import ENCLAVE_KEYS, NUMBER_CONTRACT
from ophion.testing.signing import DEV_KEYS

PUBLISHED_KEY = bytes.fromhex("853d7f0010fd86d0d7811c1f9d968ea89a24484a8127b4a483ddf5d2cfec766d")
GROUP = b64decode("DyAOiF/ynpc+JXa2YAGB0bCitSlOMNm+ShmB/7M6C4w=")
FROM, FOR = ENCLAVE_KEYS[:2]


def published() -> bytes:
    return sign_private_transaction(
        PUBLISHED_KEY,
        nonce=0,
        gas_price=1000,
        gas_limit=3_000_000,
        to=None,
        data=NUMBER_CONTRACT,
        private_from=FROM,
        private_for=[FOR],
        chain_id=4,
    )


def test_the_published_transaction_to_the_byte() -> None:
    raw = published()
    assert keccak256(raw).hex() == "cf19b7e4302661d7755075a609d184ec2ecd122ecce5dd971380d54987fec07d"
    found = decode_private_transaction(raw)
    assert found.raw == raw
    assert found.sender == bytes.fromhex("b3d6f5a4491a6137277699a2d4343ef4fe3c0fdc")
    assert (found.nonce, found.gas_price, found.gas_limit, found.to, found.value) == (0, 1000, 3_000_000, None, 0)
    assert (found.chain_id, found.signature[0]) == (4, 44)
    assert (found.private_from, found.private_for, found.privacy_group_id) == (FROM, [FOR], None)
    assert (found.group, found.restriction) == (GROUP, b"restricted")


@pytest.mark.parametrize(
    ("group", "v", "r", "hash"),
    [
        (
            None,
            0xFE8,
            0x81AB05AC79F9D50210F5593BD9B3D87D5C3C0EC3689710B03ED2D1D4FCB2C0F9,
            "76e5a226280044c351b0e2695c209686047cc346bd5be5a21be949682ec73067",
        ),
        (
            GROUP,
            0xFE8,
            0xF60AC0825A51E63DFED3A7459DDDC6150DD043658B34A66DBF665BEE59B40587,
            "0350962aec7871da07c42e76b61f8b09690f0c0c0b93e8487dd598fa9cb2f182",
        ),
    ],
)
def test_transactions_of_the_dev_chain(group: bytes | None, v: int, r: int, hash: str) -> None:
    raw = sign_private_transaction(
        DEV_KEYS[0].secret(),
        nonce=0,
        gas_price=0,
        gas_limit=3_000_000,
        to=None,
        data=NUMBER_CONTRACT,
        private_from=FROM,
        private_for=None if group else [FOR],
        privacy_group_id=group,
        chain_id=2018,
    )
    found = decode_private_transaction(raw)
    assert (found.signature[0], found.signature[1], found.hash.hex()) == (v, r, hash)
    assert found.sender == DEV_KEYS[0].address
    assert found.group == GROUP
    assert found.privacy_group_id == group


@pytest.mark.parametrize(
    ("members", "id"),
    [
        (
            [
                "g59BmTeJIn7HIcnq8VQWgyh/pDbvbt2eyP0Ii60aDDw=",
                "negmDcN2P4ODpqn/6WkJ02zT/0w0bjhGpkZ8UP6vARk=",
            ],
            "68/Cq0mVjB8FbXDLE1tbDRAvD/srluIok137uFOaClM=",
        ),
        (
            [
                "g59BmTeJIn7HIcnq8VQWgyh/pDbvbt2eyP0Ii60aDDw=",
                "negmDcN2P4ODpqn/6WkJ02zT/0w0bjhGpkZ8UP6vARk=",
                "6fg8q5rWMBoAT2oIiU3tYJbk4b7oAr7dxaaVY7TeM3U=",
            ],
            "/xzRjCLioUBkm5LYuzll61GXyrD5x7bvXzQk/ovJA/4=",
        ),
        (
            [
                "BULeR8JyUWhiuuCMU/HLA0Q5pzkYT+cHII3ZKBey3Bo=",
                "1iTZde/ndBHvzhcl7V68x44Vx7pl8nwx9LqnM/AfJUg=",
            ],
            "kTeJS4TI7mnWhJrEItmjHe1iDepAuURPmeMVcyQOgr0=",
        ),
    ],
)
def test_ids_of_groups(members: list[str], id: str) -> None:
    keys = [b64decode(member) for member in members]
    assert legacy_id(keys) == legacy_id([*reversed(keys), keys[0]]) == b64decode(id)


def test_contracts_lie_elsewhere_in_every_group() -> None:
    sender = DEV_KEYS[0].address
    other = b64decode("kTeJS4TI7mnWhJrEItmjHe1iDepAuURPmeMVcyQOgr0=")
    assert private_contract_address(sender, 0, GROUP).hex() == "ebf56429e6500e84442467292183d4d621359838"
    assert private_contract_address(sender, 0, other).hex() == "8220ca987f7bb7f99815d0ef64e1d8a072a2c167"


def test_a_marker_is_a_legacy_transaction_without_a_chain_id() -> None:
    secret, key, precompile = DEV_KEYS[2].secret(), bytes(range(32)), (126).to_bytes(20, "big")
    (raw,) = sign_markers(precompile, [(secret, 7, 5, 60_000, key)])
    nonce, price, gas, to, value, data, v, *_ = rlp.decode(raw)
    assert [nonce, price, gas, to, value, data] == [b"\x07", b"\x05", (60_000).to_bytes(2, "big"), precompile, b"", key]
    assert v in (b"\x1b", b"\x1c")
    (decoded,) = decode_transactions([raw])
    assert not isinstance(decoded, str)
    assert decoded.sender == DEV_KEYS[2].address


def test_an_undecodable_item_is_an_exception_in_the_list() -> None:
    good, bad = decode_private_transactions([published(), b"\xc0"])
    assert good.nonce == 0
    assert isinstance(bad, NativeError)
    for raw in (b"", b"\x80", published()[:-1], published() + b"\0", b"\xf8\xff"):
        with pytest.raises(NativeError, match="private transaction"):
            decode_private_transaction(raw)
