"""The system contracts of the protocol are at their addresses."""

from __future__ import annotations

from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.forks import Milestone
from ophion.chainspec.system_contracts import SYSTEM_CONTRACTS

SYSTEM_ADDRESS = bytes.fromhex("fffffffffffffffffffffffffffffffffffffffe")


def test_each_contract_asks_whether_the_system_calls() -> None:
    for contract in SYSTEM_CONTRACTS:
        assert contract.code[:2] == bytes.fromhex("3373")  # the contract code starts with CALLER, PUSH20
        assert contract.code[2:22] == SYSTEM_ADDRESS


def test_the_dev_network_has_those_of_its_forks() -> None:
    for fork, count in (("shanghai", 0), ("cancun", 1), ("osaka", 4)):
        codes = {account.address: account.code for account in dev_genesis(fork).accounts if account.code}
        wanted = [contract for contract in SYSTEM_CONTRACTS if contract.since <= Milestone[fork.upper()]]
        assert codes == {contract.address: contract.code for contract in wanted}
        assert len(codes) == count
