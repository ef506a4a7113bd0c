from __future__ import annotations

from ophion.rpc.services.opcode_numbers import OPCODE_NUMBERS


def test_numbers_of_the_yellow_paper() -> None:
    expected = {
        "STOP": 0x00,
        "SIGNEXTEND": 0x0B,
        "CLZ": 0x1E,
        "KECCAK256": 0x20,
        "EXTCODEHASH": 0x3F,
        "BLOBBASEFEE": 0x4A,
        "PUSH0": 0x5F,
        "PUSH32": 0x7F,
        "DUP16": 0x8F,
        "SWAP16": 0x9F,
        "LOG4": 0xA4,
        "CREATE2": 0xF5,
        "STATICCALL": 0xFA,
        "SELFDESTRUCT": 0xFF,
    }
    assert {name: OPCODE_NUMBERS[name] for name in expected} == expected
