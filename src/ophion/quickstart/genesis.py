"""The genesis file of a network: validators, funded accounts and all forks that its consensus supports."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Final

from ophion.chainspec.consensus_parameters import BFT_MIX_HASH
from ophion.chainspec.dev_network import CREATE2_DEPLOYER, DEV_ACCOUNTS, ORIGINAL_ACCOUNTS
from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.permissions.contract_genesis import account_contracts
from ophion.primitives.types import Address
from ophion.quickstart.plan import Consensus, NetworkPlan

_GAS_LIMIT: Final = 0x1FFFFFFFFFFFFF
_EPOCH: Final = 30_000
_MARKER_FUNDS: Final = 10**24
_BASE_FEE: Final = 7
"""The lowest base fee with which libraries detect EIP-1559. With a base fee of 0, they assume that EIP-1559 is
inactive.
"""
_FORKS: Final = ("berlinBlock", "londonBlock")
_LATER_FORKS: Final = ("shanghaiTime", "cancunTime", "pragueTime", "osakaTime")
"""Forks after London, which Clique networks do not support."""


def genesis_document(
    plan: NetworkPlan, validators: Sequence[Address], markers: Sequence[Address] = ()
) -> dict[str, Any]:
    """Return the genesis file of a network other than dev. `markers` are accounts that pay for private transactions."""
    members = sorted(validators)
    forks = _FORKS if plan.consensus is Consensus.CLIQUE else (*_FORKS, *_LATER_FORKS)
    config: dict[str, Any] = {"chainId": plan.chain_id, **dict.fromkeys(forks, 0)}
    if plan.has_free_gas:
        config["zeroBaseFee"] = True
    if plan.consensus is Consensus.CLIQUE:
        config["clique"] = {"blockperiodseconds": int(plan.period_s), "epochlength": _EPOCH}
        extra, mix_hash = bytes(32) + b"".join(members) + bytes(65), bytes(32)
    else:
        config[plan.consensus.value] = _bft_section(plan.period_s)
        protocol = Ibft2() if plan.consensus is Consensus.IBFT2 else Qbft()
        extra, mix_hash = protocol.encode_extra(BftExtraData(bytes(32), tuple(members)), ExtraForm.FULL), BFT_MIX_HASH
    return {
        "config": config,
        "nonce": "0x0",
        "timestamp": "0x0",
        "gasLimit": hex(_GAS_LIMIT),
        "difficulty": "0x1",
        "baseFeePerGas": "0x0" if plan.has_free_gas else hex(_BASE_FEE),
        "mixHash": "0x" + mix_hash.hex(),
        "coinbase": "0x" + bytes(20).hex(),
        "extraData": "0x" + extra.hex(),
        "alloc": _alloc(plan, markers),
    }


def _bft_section(period_s: float) -> dict[str, int]:
    """Return the genesis section of a BFT protocol. A fractional period is written in a form that Besu also reads."""
    section = {
        "blockperiodseconds": max(1, int(period_s)),
        "epochlength": _EPOCH,
        "requesttimeoutseconds": max(1, ceil(2 * period_s)),
    }
    if period_s % 1:
        section["xblockperiodmilliseconds"] = round(1000 * period_s)
    return section


def _alloc(plan: NetworkPlan, markers: Sequence[Address]) -> dict[str, Any]:
    """Return the genesis accounts: funded accounts with well-known keys, the CREATE2 deployer of Foundry's scripts, and
    the permission contracts if enabled.
    """
    alloc: dict[str, Any] = {account.address.hex(): {"balance": hex(account.balance)} for account in DEV_ACCOUNTS}
    alloc |= {address.hex(): {"balance": hex(_MARKER_FUNDS)} for address in markers}
    if plan.has_permissions:
        admin = ORIGINAL_ACCOUNTS[0].address
        contracts = account_contracts([admin], [*(account.address for account in DEV_ACCOUNTS), *markers])
        alloc |= {address.hex(): account for address, account in contracts.items()}
    return alloc | CREATE2_DEPLOYER
