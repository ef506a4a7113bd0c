"""Names of the instructions in a `vmTrace`, as Anvil writes them. Programs such as cryo expect an `op` in each step.

The traces of this node follow Besu 21.10, which writes no names. A development node with a preset adds them.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

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


def with_names(text: bytes) -> bytes:
    """Return a result of `trace_replay*` or `trace_call*` as JSON text, with `op` in each step of each `vmTrace`."""
    result = orjson.loads(text)
    for entry in result if isinstance(result, list) else [result]:
        if entry is not None:
            _name(entry.get("vmTrace"))
    return orjson.dumps(result)


def _name(machine: dict[str, Any] | None) -> None:
    """Name the instructions of a trace and of the calls in it, without recursion: calls nest up to 1,024 deep."""
    waiting = [machine]
    while waiting:
        found = waiting.pop()
        if found is None:
            continue
        code = bytes.fromhex(found["code"][2:])
        for step in found["ops"]:
            at = step["pc"]
            step["op"] = _NAMES.get(code[at], _UNKNOWN) if at < len(code) else "STOP"
            waiting.append(step["sub"])
