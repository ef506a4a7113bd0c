"""Tests accounts for which the node signs, and the errors without such accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct
from msgspec.structs import replace

from ophion.chainspec.dev_network import DEV_ACCOUNTS
from ophion.rpc.methods.eth_accounts import _is_plain, _signed_natively
from ophion.rpc.schema.render import checksum_address
from ophion.testing.signing import DEV_KEYS
from ophion.wallet.keyring import Keyring
from ophion.wallet.unsigned_transaction import DYNAMIC_FEE, UnsignedTransaction
from tests.unit.rpc.interface import Interface, open_interface
from tests.unit.wallet.test_typed_data import MAIL, of_wallets

ADDRESSES = ["0x" + account.address.hex() for account in DEV_ACCOUNTS]
FIRST = ADDRESSES[0]
TO = "0x" + "d0" * 20


@pytest.fixture
def signer(tmp_path: Path) -> Iterator[Interface]:
    """Open a node of the development network that signs for its accounts."""
    keyring = Keyring(account.private_key for account in DEV_ACCOUNTS)
    with open_interface(tmp_path, accounts=keyring) as opened:
        yield opened


def test_a_node_without_keys_says_so(dev: Interface) -> None:
    assert dev.ask("eth_accounts") == []
    for params in ([], [{}], [{"from": FIRST, "to": TO}], [5]):
        code, message = dev.error("eth_sendTransaction", *params)
        assert (code, message) == (
            -32604,
            "The method eth_sendTransaction is not supported. Use eth_sendRawTransaction to send a signed transaction "
            "to Ophion.",
        )
    for name in ("eth_signTransaction", "eth_sign", "personal_sign", "eth_signTypedData_v4", "eth_signTypedData"):
        assert dev.error(name, FIRST, "0x") == (-32604, "Method not enabled")


def test_all_accounts_are_listed_and_can_send(signer: Interface) -> None:
    assert signer.ask("eth_accounts") == ADDRESSES
    for address in ADDRESSES:
        hash = signer.ask("eth_sendTransaction", {"from": address, "to": TO, "value": "0x1"})
        assert signer.ask("eth_getTransactionByHash", hash)["from"] == address
    signer.run(signer.node.seal())
    assert signer.ask("eth_getBalance", TO) == hex(len(ADDRESSES))


def test_many_at_once_get_different_nonces(signer: Interface) -> None:
    body = b'{"id":1,"method":"eth_sendTransaction","params":[{"from":"%b","to":"%b"}]}' % (FIRST.encode(), TO.encode())
    answers = signer.message(b"[" + b",".join([body] * 20) + b"]")
    assert all("result" in answer for answer in answers), answers
    nonces = [signer.ask("eth_getTransactionByHash", answer["result"])["nonce"] for answer in answers]
    assert sorted(int(nonce, 16) for nonce in nonces) == list(range(20))


@pytest.mark.parametrize(
    ("transaction", "code"),
    [
        (None, -32602),
        ({"to": TO}, -32602),
        ({"from": TO, "to": TO}, -32000),
        ({"from": FIRST, "to": TO, "value": hex(10**30)}, -32004),
        ({"from": FIRST, "to": TO, "gas": "0x5208", "blobVersionedHashes": ["0x" + "01" * 32]}, -32602),
        ({"from": FIRST, "to": TO, "gas": "0x5208", "gasPrice": "0x1"}, -32009),
        ({"from": FIRST, "to": TO, "chainId": "0x1"}, -32000),
    ],
)
def test_what_cannot_be_sent_is_refused(signer: Interface, transaction: Any, code: int) -> None:
    assert signer.error("eth_sendTransaction", transaction)[0] == code
    assert len(signer.node.pool) == 0


@pytest.mark.parametrize(
    "members", [{}, {"gasPrice": "0x3b9aca00"}, {"type": "0x1"}, {"type": "0x0"}, {"maxFeePerGas": "0x3b9aca00"}]
)
def test_a_signed_transaction_can_be_sent_by_any_client(signer: Interface, members: dict[str, str]) -> None:
    signed = signer.ask("eth_signTransaction", {"from": FIRST, "to": TO, "value": "0x5", **members})
    assert Account.recover_transaction(signed["raw"]).lower() == FIRST
    hash = signer.ask("eth_sendRawTransaction", signed["raw"])
    sent = signer.ask("eth_getTransactionByHash", hash)
    for name in ("hash", "type", "nonce", "gas", "value", "input", "v", "r", "s", "from", "to"):
        assert signed["tx"][name] == sent[name], name
    assert (signed["tx"]["gasPrice"] is None) is (sent["type"] == "0x2")
    assert signed["tx"].get("yParity") == sent.get("yParity")


def test_the_highest_tip_with_the_base_fee_exceeds_128_bits(dev: Interface) -> None:
    sender = "0x" + DEV_KEYS[1].address.hex()
    call = {"from": sender, "to": TO, "maxPriorityFeePerGas": hex(2**128 - 1)}
    assert dev.error("eth_fillTransaction", call)[0] == -32004
    shown = dev.ask("eth_fillTransaction", {**call, "gas": "0x5208"})["tx"]
    assert shown["maxFeePerGas"] == hex(2**128 - 1)


def test_a_filled_transaction_lacks_only_its_signature(dev: Interface) -> None:
    sender = "0x" + DEV_KEYS[1].address.hex()
    filled = dev.ask("eth_fillTransaction", {"from": sender, "to": TO, "value": "0x5"})
    shown = filled["tx"]
    assert (shown["type"], shown["nonce"], shown["gas"], shown["chainId"]) == ("0x2", "0x0", "0x5208", "0x7e2")
    assert (shown["gasPrice"], shown["v"], shown["r"], shown["s"]) == (None, "0x0", "0x0", "0x0")
    wanted = {name: shown[name] for name in ("nonce", "gas", "maxFeePerGas", "maxPriorityFeePerGas", "chainId")}
    signed = Account.sign_transaction(
        {**wanted, "type": 2, "to": checksum_address(bytes.fromhex(TO[2:])), "value": 5}, DEV_KEYS[1].secret()
    )
    dev.ask("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())
    assert filled["raw"].startswith("0x02")


def test_messages_are_signed_in_both_orders(signer: Interface) -> None:
    expected = Account.sign_message(encode_defunct(b"hello"), DEV_ACCOUNTS[0].private_key)
    signature = "0x" + bytes(expected.signature).hex()
    assert signer.ask("eth_sign", FIRST, "0x" + b"hello".hex()) == signature
    assert signer.ask("personal_sign", "0x" + b"hello".hex(), FIRST) == signature
    assert signer.ask("personal_sign", "0x" + b"hello".hex(), FIRST, "a password") == signature
    assert signer.error("eth_sign", TO, "0x") == (-32000, "unknown account")
    assert signer.error("personal_sign", "hello", FIRST)[0] == -32602


@pytest.mark.parametrize("name", ["eth_signTypedData_v4", "eth_signTypedData"])
def test_typed_data_is_signed_as_object_or_text(signer: Interface, name: str) -> None:
    import json

    signature = bytes.fromhex(signer.ask(name, FIRST, MAIL)[2:])
    assert Account._recover_hash(of_wallets(MAIL), signature=signature).lower() == FIRST
    assert signer.ask(name, FIRST, json.dumps(MAIL)) == "0x" + signature.hex()
    assert signer.error(name, FIRST, "{")[0] == -32602
    assert signer.request(name, FIRST, {**MAIL, "primaryType": "x"})["error"]["data"] == (
        "primaryType: one of the types is expected"
    )


def test_a_sender_waits_for_its_turn_only(signer: Interface) -> None:
    """The lock of one account does not block another account."""

    async def story() -> None:
        assert signer.context.accounts is not None
        async with signer.context.accounts.locks[DEV_ACCOUNTS[0].address]:
            body = b'{"id":1,"method":"eth_sendTransaction","params":[{"from":"%b","to":"%b"}]}'
            first = signer.dispatcher.handle(body % (FIRST.encode(), TO.encode()))
            other = signer.dispatcher.handle(body % (ADDRESSES[1].encode(), TO.encode()))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not first.is_done  # type: ignore[union-attr]
            assert isinstance(other, bytes) or other.is_done  # type: ignore[union-attr]

    signer.run(story())


@pytest.mark.parametrize("to", [None, bytes.fromhex("d0" * 20)])
@pytest.mark.parametrize("size", [0, 1, 2**64 - 1])
def test_both_ways_to_sign_give_the_same_transaction(to: bytes | None, size: int) -> None:
    key = DEV_KEYS[0]
    unsigned = UnsignedTransaction(
        type=DYNAMIC_FEE, chain_id=31337, nonce=size, gas=size, to=to, value=size**4, input=bytes(min(size, 99)),
        max_fee_per_gas=size, max_priority_fee_per_gas=size,
    )  # fmt: skip
    assert _is_plain(unsigned)
    signed = _signed_natively(unsigned, key)
    assert signed.raw == unsigned.signed_by(key)
    assert signed.sender == key.address


def test_other_transactions_are_not_plain() -> None:
    plain = UnsignedTransaction(type=DYNAMIC_FEE, chain_id=1, nonce=0, gas=21_000, to=bytes(20))
    changes: list[dict[str, Any]] = [
        {"type": 0},
        {"chain_id": None},
        {"gas": 2**64},
        {"access_list": ((bytes(20), ()),)},
    ]
    assert _is_plain(plain)
    assert not any(_is_plain(replace(plain, **change)) for change in changes)
