"""Tests account rules in contracts: every case of operations.md 11 about transactions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chain.block import decode_block
from ophion.chain.importer import ImportOutcome
from ophion.chainspec.genesis import Genesis, GenesisAccount
from ophion.errors import InvalidBlock
from ophion.native.crypto import keccak256
from ophion.native.transactions import Body
from ophion.node.config import NodeConfig
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, ACCOUNT_RULES, RULES
from ophion.permissions.options import PermissionConfig
from ophion.pool.events import Admitted, Origin, Rejected
from ophion.primitives import rlp
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.permissioned_network import calldata, permissioned_genesis
from ophion.testing.signing import (
    DEV_KEYS,
    fee_transaction,
    legacy_transaction,
    set_code_transaction,
    signed_authorization,
)

ADMIN, LISTED, OTHER = DEV_KEYS
SLOW = bytes(18) + b"\x51\x0e"
FORKS = ["petersburg", "osaka"]


def ruled(contract: bytes = ACCOUNT_INGRESS, **more: Any) -> NodeConfig:
    rules = PermissionConfig(accounts_contract_enabled=True, accounts_contract=contract, **more)
    return replace(DEV_CONFIG, permissions=rules)


def genesis(fork: str = "osaka") -> Genesis:
    return permissioned_genesis([ADMIN.address], [LISTED.address], fork=fork)


def play(
    path: Path,
    story: Callable[[TestCore], Coroutine[Any, Any, None]],
    config: NodeConfig | None = None,
    network: Genesis | None = None,
) -> None:
    with open_core(path, ruled() if config is None else config, network or genesis()) as core:
        asyncio.run(story(core))


def senders(core: TestCore) -> list[bytes]:
    body = core.chain.store.body(core.chain.head.hash)
    assert body is not None
    return [transaction.sender for transaction in body.transactions]


def block_of_another(path: Path, network: Genesis, *raws: bytes) -> bytes:
    """Return a block of a node without rules."""

    async def story(core: TestCore) -> bytes:
        header, _ = await core.mine(*raws)
        block = core.chain.store.block(header.hash)
        assert block is not None
        return block

    with open_core(path, genesis=network) as core:
        return asyncio.run(story(core))


def change(nonce: int, call: bytes, to: bytes = ACCOUNT_RULES) -> bytes:
    return legacy_transaction(ADMIN, nonce, to=to, data=call, gas=500_000)


@pytest.mark.parametrize("fork", FORKS)
def test_pool_admission_does_not_evaluate_it_but_block_building_does(tmp_path: Path, fork: str) -> None:
    async def story(core: TestCore) -> None:
        await core.mine(legacy_transaction(LISTED, 0), legacy_transaction(OTHER, 0), legacy_transaction(OTHER, 1))
        assert senders(core) == [LISTED.address]
        assert core.pool.transactions() == [], "failing transactions leave the pool"

    play(tmp_path, story, network=genesis(fork))


def test_at_admission_it_refuses_transactions_of_clients_if_it_is_told_to(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        for raw in (legacy_transaction(OTHER, 0), fee_transaction(OTHER, 0), authorised_by_other()):
            (answer,) = await core.pool.add([raw], Origin.LOCAL)
            assert isinstance(answer, Rejected)
            assert str(answer.error) == "Sender account not authorized to send transactions"
            assert "says no" in str(answer.error.detail)
        await core.mine(legacy_transaction(LISTED, 0), change(0, calldata("addAccount(address)", OTHER.address)))
        await core.mine(legacy_transaction(OTHER, 0))
        assert senders(core) == [OTHER.address]
        # transactions of peers wait in the pool for their permission
        (answer,) = await core.pool.add([legacy_transaction(OTHER, 1)], Origin.REMOTE)
        assert isinstance(answer, Admitted)

    play(tmp_path, story, ruled(accounts_contract_at_admission=True))


def test_a_contract_that_takes_too_long_refuses_nothing_at_admission(tmp_path: Path) -> None:
    network = genesis()
    loop = GenesisAccount(SLOW, 0, 0, bytes.fromhex("5b600056"), ())  # JUMPDEST, jump back
    network = replace(network, accounts=(*network.accounts, loop))

    async def story(core: TestCore) -> None:
        await core.send(legacy_transaction(OTHER, 0), legacy_transaction(OTHER, 1))
        contract = core.core.permissions.account_contract
        assert contract is not None
        assert contract.asked == 1, "the second transaction does not call it again"

    play(tmp_path, story, ruled(SLOW, accounts_contract_at_admission=True), network)


@pytest.mark.parametrize("fork", FORKS)
def test_block_import_refuses_a_block_with_a_forbidden_transaction(tmp_path: Path, fork: str) -> None:
    network = genesis(fork)
    raw = block_of_another(tmp_path / "other", network, legacy_transaction(LISTED, 0), legacy_transaction(OTHER, 0))

    async def story(core: TestCore) -> None:
        core.clock.advance(10)
        block = decode_block(raw, core.chain.engine)
        with pytest.raises(InvalidBlock) as raised:
            await core.core.importer.import_block(block)
        assert raised.value.rule == "transaction not permitted"
        assert f"transaction 1: account 0x{OTHER.address.hex()} may not send this transaction" in str(raised.value)
        assert f"contract 0x{ACCOUNT_INGRESS.hex()} at block 0 says no" in str(raised.value)
        assert core.core.importer.bad_blocks.get(block.header.hash) is not None
        batch = await core.core.importer.import_batch([block])
        assert isinstance(batch.failure, InvalidBlock)

    play(tmp_path / "ruled", story, network=network)


def test_block_import_accepts_what_is_permitted(tmp_path: Path) -> None:
    raw = block_of_another(tmp_path / "other", genesis(), fee_transaction(LISTED, 0), legacy_transaction(ADMIN, 0))

    async def story(core: TestCore) -> None:
        core.clock.advance(10)
        imported = await core.core.importer.import_block(decode_block(raw, core.chain.engine))
        assert imported.outcome is ImportOutcome.HEAD

    play(tmp_path / "ruled", story)


def authorised_by_other(nonce: int = 0) -> bytes:
    """Return a transaction of a listed account that sets the code of an unlisted account (EIP-7702)."""
    return set_code_transaction(LISTED, nonce, [signed_authorization(OTHER, 0, ACCOUNT_RULES, 0)])


def test_block_building_leaves_out_an_authorization_of_an_unlisted_account(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        own = set_code_transaction(LISTED, 0, [signed_authorization(ADMIN, 0, ACCOUNT_RULES, 0)])
        await core.mine(own, authorised_by_other(1))
        assert senders(core) == [LISTED.address]
        assert not core.chain.state(core.chain.head.header).code(OTHER.address)
        assert core.pool.transactions() == []

    play(tmp_path, story)


def test_block_import_refuses_an_authorization_of_an_unlisted_account(tmp_path: Path) -> None:
    raw = block_of_another(tmp_path / "other", genesis(), authorised_by_other())

    async def story(core: TestCore) -> None:
        core.clock.advance(10)
        with pytest.raises(InvalidBlock) as raised:
            await core.core.importer.import_block(decode_block(raw, core.chain.engine))
        assert raised.value.rule == "transaction not permitted"
        assert f"transaction 0: account 0x{OTHER.address.hex()} may not authorize" in str(raised.value)

    play(tmp_path / "ruled", story)


def test_a_contract_that_is_too_slow_for_this_machine_condemns_no_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = block_of_another(tmp_path / "other", genesis(), legacy_transaction(LISTED, 0))

    async def story(core: TestCore) -> None:
        core.clock.advance(10)
        block, importer = decode_block(raw, core.chain.engine), core.core.importer
        with monkeypatch.context() as slow:
            slow.setattr("ophion.permissions.contract_calls._DEADLINE_S", 0.0)
            with pytest.raises(InvalidBlock, match="did not answer: the call took too long") as raised:
                await importer.import_block(block)
            assert raised.value.transient
            assert importer.bad_blocks.get(block.header.hash) is None
        imported = await importer.import_block(block)
        assert imported.outcome is ImportOutcome.HEAD

    play(tmp_path / "ruled", story)


def test_an_account_is_let_in_and_shut_out_by_the_administrator(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.mine(change(0, calldata("addAccount(address)", OTHER.address)))
        await core.mine(legacy_transaction(OTHER, 0))
        assert senders(core) == [OTHER.address]
        await core.mine(change(1, calldata("removeAccount(address)", OTHER.address)))
        await core.mine(legacy_transaction(OTHER, 1))
        assert senders(core) == []
        assert core.pool.transactions() == []

    play(tmp_path, story)


def test_a_change_counts_from_the_next_block_on(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        call = calldata("addAccount(address)", OTHER.address)
        await core.mine(change(0, call), legacy_transaction(OTHER, 0))
        assert senders(core) == [ADMIN.address]

    play(tmp_path, story)


def test_only_administrators_change_rules(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        call = calldata("addAccount(address)", OTHER.address)
        await core.mine(legacy_transaction(LISTED, 0, to=ACCOUNT_RULES, data=call, gas=500_000))
        await core.mine(legacy_transaction(OTHER, 0))
        assert senders(core) == []

    play(tmp_path, story)


def test_account_contract_absent_at_head_allows_everything_and_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(core: TestCore) -> None:
        await core.mine(legacy_transaction(OTHER, 0))
        await core.mine(legacy_transaction(OTHER, 1))
        assert senders(core) == [OTHER.address]

    with caplog.at_level(logging.WARNING):
        play(tmp_path, story, ruled(b"\x55" * 20))
    assert caplog.text.count("account rules contract is missing: every account is permitted contract=0x5555") == 1


def test_account_ingress_without_rules_registered_answers_allowed(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.mine(change(0, calldata("removeContract(bytes32)", RULES), ACCOUNT_INGRESS))
        await core.mine(legacy_transaction(OTHER, 0))
        assert senders(core) == [OTHER.address]

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("6002600052602060 00f3", "neither yes nor no"),
        ("00", "0 bytes instead of 32"),
        ("60006000fd", "reverted: without a reason"),
        ("fe", "did not answer"),
    ],
)
def test_result_of_wrong_size_or_form_or_a_revert_is_not_permitted(tmp_path: Path, code: str, reason: str) -> None:
    code = code.replace(" ", "")
    create = f"60{len(code) // 2:02x}80600b6000396000f3{code}"

    async def story(core: TestCore) -> None:
        header, _ = await core.mine(legacy_transaction(ADMIN, 0, to=None, data=bytes.fromhex(create), gas=500_000))
        assert senders(core) == [ADMIN.address], "there is no contract before"
        await core.mine(legacy_transaction(LISTED, 0))
        assert senders(core) == []
        contract = core.core.permissions.account_contract
        assert contract is not None
        state = core.chain.store.state(header.header.state_root)
        refusal = contract.refusal(header, state, LISTED.address)
        assert refusal is not None
        assert reason in refusal

    made = keccak256(rlp.encode([ADMIN.address, b""]))[12:]
    play(tmp_path, story, ruled(made))


def test_a_contract_that_says_it_was_late_was_not(tmp_path: Path) -> None:
    """A revert text that looks like a timeout does not count as a timeout: the answer is cached, and the block stays
    refused.
    """
    words = b"did not answer: the call took too long"
    head, rest = words[:32].hex(), words[32:].ljust(32, bytes(1)).hex()
    code = "6308c379a060e01b6000526020600452" + f"60{len(words):02x}602452" + f"7f{head}604452" + f"7f{rest}606452"
    code += "60846000fd"
    create = bytes.fromhex(f"60{len(code) // 2:02x}80600b6000396000f3{code}")

    async def story(core: TestCore) -> None:
        header, _ = await core.mine(legacy_transaction(ADMIN, 0, to=None, data=create, gas=500_000))
        contract = core.core.permissions.account_contract
        assert contract is not None
        state = core.chain.store.state(header.header.state_root)
        for _ in range(3):
            refusal = contract.refusal(header, state, LISTED.address)
            assert refusal is not None
            assert refusal.endswith(f"reverted: {words.decode()}")
        assert contract.asked == 1
        with pytest.raises(InvalidBlock) as raised:
            contract.check(header, state, Body.of([legacy_transaction(LISTED, 0)], [], None))
        assert not raised.value.transient

    play(tmp_path, story, ruled(keccak256(rlp.encode([ADMIN.address, b""]))[12:]))


def test_local_and_on_chain_rules_combine_with_and(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(f'accounts-whitelist=["0x{ADMIN.address.hex()}","0x{OTHER.address.hex()}"]')

    async def story(core: TestCore) -> None:
        permissions = core.core.permissions
        assert permissions.account_refusal(LISTED.address) is not None, "by the file"
        await core.mine(legacy_transaction(ADMIN, 0), legacy_transaction(OTHER, 0))
        assert senders(core) == [ADMIN.address], "the other is in the file and not in the contract"

    play(tmp_path, story, ruled(accounts_file_enabled=True, accounts_file=file))


def test_each_question_is_asked_once_per_block(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        contract = core.core.permissions.account_contract
        assert contract is not None
        state = core.chain.store.state(core.chain.head.header.state_root)
        for _ in range(100):
            contract.refusal(core.chain.head, state, OTHER.address)
        assert contract.asked == 1
        assert contract.verdicts.asked == 100
        await core.seal()
        state = core.chain.store.state(core.chain.head.header.state_root)
        contract.refusal(core.chain.head, state, OTHER.address)
        assert contract.asked == 2

    play(tmp_path, story)
