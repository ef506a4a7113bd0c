"""System contracts that the protocol calls in every block, as published in the EIPs.

A genesis that activates the forks of these contracts should contain the contracts. Calls to a missing contract have no
effect. The built-in development network contains all these contracts.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ophion.chainspec.forks import Milestone
from ophion.primitives.types import Address


class SystemContract(Struct, frozen=True):
    """A system contract: its purpose, the first fork that calls it, its fixed address and its code."""

    purpose: str
    since: Milestone
    address: Address
    code: bytes


SYSTEM_CONTRACTS: Final = (
    SystemContract(
        "Roots of parent beacon blocks (EIP-4788).",
        Milestone.CANCUN,
        bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02"),
        bytes.fromhex(
            "3373fffffffffffffffffffffffffffffffffffffffe14604d57602036146024575f5ffd5b5f35801560495762001fff8106"
            "90815414603c575f5ffd5b62001fff01545f5260205ff35b5f5ffd5b62001fff42064281555f359062001fff015500"
        ),
    ),
    SystemContract(
        "Hashes of the last 8191 blocks (EIP-2935).",
        Milestone.PRAGUE,
        bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935"),
        bytes.fromhex(
            "3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35600143038111604257611fff814303"
            "11604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500"
        ),
    ),
    SystemContract(
        "Withdrawals requested by contracts (EIP-7002).",
        Milestone.PRAGUE,
        bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002"),
        bytes.fromhex(
            "3373fffffffffffffffffffffffffffffffffffffffe1460cb5760115f54807fffffffffffffffffffffffffffffffffffff"
            "ffffffffffffffffffffffffffff146101f457600182026001905f5b5f821115606857810190830284830290049160010191"
            "90604d565b909390049250505036603814608857366101f457346101f4575f5260205ff35b34106101f45760015460010160"
            "0155600354806003026004013381556001015f35815560010160203590553360601b5f5260385f601437604c5fa060010160"
            "0355005b6003546002548082038060101160df575060105b5f5b8181146101835782810160030260040181604c0281546060"
            "1b8152601401816001015481526020019060020154807fffffffffffffffffffffffffffffffff0000000000000000000000"
            "0000000000168252906010019060401c908160381c81600701538160301c81600601538160281c81600501538160201c8160"
            "0401538160181c81600301538160101c81600201538160081c81600101535360010160e1565b910180921461019557906002"
            "556101a0565b90505f6002555f6003555b5f54807fffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
            "ffffff14156101cd57505f5b6001546002828201116101e25750505f6101e8565b01600290035b5f555f600155604c025ff3"
            "5b5f5ffd"
        ),
    ),
    SystemContract(
        "Consolidations requested by contracts (EIP-7251).",
        Milestone.PRAGUE,
        bytes.fromhex("0000bbddc7ce488642fb579f8b00f3a590007251"),
        bytes.fromhex(
            "3373fffffffffffffffffffffffffffffffffffffffe1460d35760115f54807fffffffffffffffffffffffffffffffffffff"
            "ffffffffffffffffffffffffffff1461019a57600182026001905f5b5f821115606857810190830284830290049160010191"
            "90604d565b9093900492505050366060146088573661019a573461019a575f5260205ff35b341061019a5760015460010160"
            "0155600354806004026004013381556001015f358155600101602035815560010160403590553360601b5f5260605f601437"
            "60745fa0600101600355005b6003546002548082038060021160e7575060025b5f5b81811461012957828101600402600401"
            "81607402815460601b815260140181600101548152602001816002015481526020019060030154905260010160e9565b9101"
            "80921461013b5790600255610146565b90505f6002555f6003555b5f54807fffffffffffffffffffffffffffffffffffffff"
            "ffffffffffffffffffffffffff141561017357505f5b6001546001828201116101885750505f61018e565b01600190035b5f"
            "555f6001556074025ff35b5f5ffd"
        ),
    ),
)
