"""The account contract at admission: transactions that arrive together share a call, with the same answers."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ophion.chainspec.genesis import GenesisAccount
from ophion.native.transactions import Transaction, decode_transactions
from ophion.permissions.contract_admission import ContractAdmission
from ophion.testing.node_core import TestCore
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.permissions.test_account_contract import SLOW, genesis, play, ruled

ADMIN, LISTED, OTHER = DEV_KEYS


def rule_of(core: TestCore) -> ContractAdmission:
    rule = core.core.permissions.local_rule
    assert rule is not None
    return rule


def signed(count: int) -> list[Transaction]:
    """Return transactions of a listed and of an unlisted account, in turn."""
    raws = [legacy_transaction((LISTED, OTHER)[number % 2], number // 2) for number in range(count)]
    found = [one for one in decode_transactions(raws) if isinstance(one, Transaction)]
    assert len(found) == count
    return found


def test_transactions_that_arrive_together_get_the_answers_of_single_ones(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        together, rule = signed(80), rule_of(core)
        single = [rule.refusal(one) for one in together]
        assert [refusal is None for refusal in single] == [True, False] * 40
        contract = core.core.permissions.account_contract
        assert contract is not None
        other = ContractAdmission(contract, core.chain)
        other.prepare(together)
        asked = contract.verdicts.asked
        assert [other.refusal(one) for one in together] == single
        assert contract.verdicts.asked == asked, "all answers were prepared"
        await core.mine()
        assert other.refusal(together[1]) is not None
        assert contract.verdicts.asked == asked + 1, "answers count at one head only"

    play(tmp_path, story, ruled(accounts_contract_at_admission=True))


def test_a_slow_contract_is_called_once_for_many_transactions(tmp_path: Path) -> None:
    network = genesis()
    loop = GenesisAccount(SLOW, 0, 0, bytes.fromhex("5b600056"), ())  # JUMPDEST, jump back
    network = replace(network, accounts=(*network.accounts, loop))

    async def story(core: TestCore) -> None:
        together, rule = signed(40), rule_of(core)
        rule.prepare(together)
        assert [rule.refusal(one) for one in together] == [None] * 40
        contract = core.core.permissions.account_contract
        assert contract is not None
        assert contract.asked == 1

    play(tmp_path, story, ruled(SLOW, accounts_contract_at_admission=True), network)
