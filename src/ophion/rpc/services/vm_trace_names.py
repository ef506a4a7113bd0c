"""Names of the instructions in a `vmTrace`, as Anvil writes them. Programs such as cryo expect an `op` in each step.

The traces of this node follow Besu 21.10, which writes no names. A development node with a preset adds them.
"""

from __future__ import annotations

import re
from typing import Final

_UNKNOWN: Final = "Unknown opcode"
_GROUPS: Final = {
    0x00: "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND",
    0x10: "LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR CLZ",
    0x20: "KECCAK256",
    0x30: "ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY CODESIZE CODECOPY GASPRICE"
    " EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY EXTCODEHASH",
    0x40: "BLOCKHASH COINBASE TIMESTAMP NUMBER DIFFICULTY GASLIMIT CHAINID SELFBALANCE BASEFEE BLOBHASH BLOBBASEFEE",
    0x50: "POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST TLOAD TSTORE MCOPY PUSH0",
    0x60: " ".join(f"PUSH{count}" for count in range(1, 33)),
    0x80: " ".join(f"DUP{count}" for count in range(1, 17)),
    0x90: " ".join(f"SWAP{count}" for count in range(1, 17)),
    0xA0: " ".join(f"LOG{count}" for count in range(5)),
    0xF0: "CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2",
    0xFA: "STATICCALL",
    0xFD: "REVERT INVALID SELFDESTRUCT",
}
_NAMES: Final = {first + offset: name for first, names in _GROUPS.items() for offset, name in enumerate(names.split())}


_TOKENS: Final = re.compile(rb'{"ops":\[|"pc":(\d+)|\],"code":"0x([0-9a-f]*)"')
"""Matches three parts of a `vmTrace`: the start of the trace or of a call in it, the position of a step, and the end,
which has the code.

Calls nest up to 1,024 deep, which is too deep for JSON decoders. So the text is changed at these tokens. No other
part of a replay has them.
"""


def with_names(text: bytes) -> bytes:
    """Return a result of `trace_replay*` or `trace_call*` as JSON text, with `op` in each step of each `vmTrace`."""
    pieces: list[bytes] = []
    steps: list[list[tuple[int, int]]] = []  # by open trace: index of the name in `pieces`, and position in the code
    end = 0
    for token in _TOKENS.finditer(text):
        position, code = token.groups()
        if position is not None:
            pieces += text[end : token.end()], b""
            end = token.end()
            steps[-1].append((len(pieces) - 1, int(position)))
        elif code is None:
            steps.append([])
        else:
            opcodes = bytes.fromhex(code.decode())
            for index, at in steps.pop():
                pieces[index] = b',"op":"%b"' % _name(opcodes, at)
    pieces.append(text[end:])
    return b"".join(pieces)


def _name(code: bytes, at: int) -> bytes:
    return (_NAMES.get(code[at], _UNKNOWN) if at < len(code) else "STOP").encode()
