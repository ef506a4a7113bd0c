"""Numbers of EVM instructions by name, for trace formats that show name and number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

_ROWS: Final = (
    (0x00, "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND"),
    (0x10, "LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR CLZ"),
    (0x20, "KECCAK256"),
    (0x20, "SHA3"),
    (0x30, "ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY CODESIZE CODECOPY GASPRICE"),
    (0x3B, "EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY EXTCODEHASH"),
    (0x40, "BLOCKHASH COINBASE TIMESTAMP NUMBER DIFFICULTY GASLIMIT CHAINID SELFBALANCE BASEFEE BLOBHASH BLOBBASEFEE"),
    (0x44, "PREVRANDAO"),
    (0x44, "RANDOM"),
    (0x50, "POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST TLOAD TSTORE MCOPY PUSH0"),
    (0x60, " ".join(f"PUSH{count}" for count in range(1, 33))),
    (0x80, " ".join(f"DUP{count}" for count in range(1, 17))),
    (0x90, " ".join(f"SWAP{count}" for count in range(1, 17))),
    (0xA0, "LOG0 LOG1 LOG2 LOG3 LOG4"),
    (0xF0, "CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2"),
    (0xFA, "STATICCALL"),
    (0xFD, "REVERT INVALID SELFDESTRUCT"),
    (0xFF, "SUICIDE"),
)
"""Rows of consecutive instructions: the opcode of the first instruction, and the names of all instructions. Older names
have separate rows.
"""


def _numbers() -> Iterator[tuple[str, int]]:
    for first, names in _ROWS:
        for offset, name in enumerate(names.split()):
            yield name, first + offset


OPCODE_NUMBERS: Final[Mapping[str, int]] = dict(_numbers())
