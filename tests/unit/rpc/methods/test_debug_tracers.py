"""Tests the named tracers in detail, on an Istanbul-era chain and on a Cancun chain.

The expected values match geth 1.13.15 on the same genesis, with two exceptions that follow current clients: rejected
calls and collisions are shown, and empty accounts and selectors of init code are omitted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.testing.signing import DEV_KEYS
from tests.unit.rpc.contracts import REVERTING
from tests.unit.rpc.interface import Interface, open_interface

ROOT = "0x" + "c1" * 20
REVERTS, STORES, LOGS, DIES, HALTS = ("0x" + f"{number:02x}" * 20 for number in range(0xD1, 0xD6))
SENDER = "0x" + DEV_KEYS[0].address.hex()
HEIR = "0x" + "e1" * 20
NOBODY = "0x" + "e2" * 20
CODES = {
    REVERTS: REVERTING.hex(),
    STORES: "602a600755" + "600054" + "00",  # this code runs SSTORE(7, 42), SLOAD(0)
    LOGS: "60aa60006000a100",
    DIES: f"73{HEIR[2:]}ff",
    HALTS: "60011f",
}
STOP = "00"
BENEFICIARY = "0x" + "00" * 20
_BLOCKS = ["homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul"]
ISTANBUL = {f"{name}Block": 0 for name in _BLOCKS} | {"ethash": {"fixeddifficulty": 100}}
CANCUN = {f"{name}Block": 0 for name in [*_BLOCKS, "berlin", "london"]} | {
    "shanghaiTime": 0,
    "cancunTime": 0,
    "terminalTotalDifficulty": 0,
    "ethash": {},
}


def genesis(config: dict[str, Any]) -> Genesis:
    """Return a network with the contracts."""
    return parse_genesis(genesis_text(config))


def genesis_text(config: dict[str, Any]) -> str:
    contracts = {address[2:]: {"balance": "0x0", "code": "0x" + code} for address, code in CODES.items()}
    return json.dumps(
        {
            "config": {"chainId": 2018, **config},
            "difficulty": "0x10000" if "cancunTime" not in config else "0x0",
            "gasLimit": "0x1fffffff",
            "alloc": {**contracts, SENDER[2:]: {"balance": hex(10**20)}},
        }
    )


@pytest.fixture(params=[ISTANBUL, CANCUN], ids=["istanbul", "cancun"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Interface]:
    with open_interface(tmp_path, genesis(request.param)) as opened:
        yield opened


def call(to: str, value: int = 0, gas: str = "5a", op: str = "f1", length: int = 0) -> str:
    """Return code that calls a contract with `length` bytes of memory as input."""
    given = f"60{value:02x}" if op in ("f1", "f2") else ""
    return "60006000" + f"60{length:02x}6000{given}73{to[2:]}{gas}{op}"


def create(init: str, value: int = 0, salt: int | None = None) -> str:
    """Return code that creates a contract with this init code of at most 32 bytes."""
    size = len(init) // 2
    salted = "" if salt is None else f"60{salt:02x}"
    word = f"7f{init.ljust(64, '0')}600052"
    return f"{word}{salted}60{size:02x}600060{value:02x}" + ("f0" if salt is None else "f5")


def trace(node: Interface, code: str, tracer: str, value: int = 0, data: str = "0x", **config: Any) -> Any:
    """Return the tracer's result for a call to a contract with this code."""
    asked = {"from": SENDER, "to": ROOT, "gas": "0xf4240", "value": hex(value), "data": data}
    overrides = {ROOT: {"code": "0x" + code}}
    options = {"tracer": tracer, "tracerConfig": config, "stateOverrides": overrides}
    return node.ask("debug_traceCall", asked, "latest", options)


# --- callTracer ----------------------------------------------------------------------------------


def test_frames_show_what_they_got_and_used(node: Interface) -> None:
    tree = trace(node, call(STORES, 3, "61ffff") + call(NOBODY, 0, "61ffff") + STOP, "callTracer", value=5)
    stores, nobody = tree["calls"]
    assert "output" not in tree
    assert (stores["type"], stores["value"], stores["input"]) == ("CALL", "0x3", "0x")
    assert int(stores["gas"], 16) == 0xFFFF + 2300  # a call with value gets the stipend in addition to its gas
    assert int(stores["gasUsed"], 16) > 20_000
    assert (nobody["gas"], nobody["gasUsed"]) == ("0xffff", "0x0")


def test_a_delegate_call_shows_the_value_of_its_caller_and_a_static_call_none(node: Interface) -> None:
    tree = trace(node, call(STORES, op="f4") + call(LOGS, op="fa") + STOP, "callTracer", value=5)
    delegate, static = tree["calls"]
    assert (delegate["type"], delegate["from"], delegate["to"], delegate["value"]) == (
        "DELEGATECALL",
        ROOT,
        STORES,
        "0x5",
    )
    assert "value" not in static
    assert static["error"] == "write protection"


def test_rejected_calls_are_listed_and_cost_nothing(node: Interface) -> None:
    code = call(STORES, 9, "61ffff") + create("00", 9) + create("00", 9, salt=1) + STOP
    frames = trace(node, code, "callTracer")["calls"]
    assert [frame["type"] for frame in frames] == ["CALL", "CREATE", "CREATE2"]
    assert {frame["error"] for frame in frames} == {"insufficient balance for transfer"}
    assert {frame["gasUsed"] for frame in frames} == {"0x0"}
    assert int(frames[0]["gas"], 16) == 0xFFFF + 2300
    assert ["to" in frame for frame in frames] == [True, False, False]


def test_a_revert_shows_its_data_and_what_they_say(node: Interface) -> None:
    (frame,) = trace(node, call(REVERTS) + STOP, "callTracer")["calls"]
    assert (frame["error"], frame["revertReason"]) == ("execution reverted", "no!")
    assert frame["output"].startswith("0x08c379a0")
    plain = trace(node, "60036000fd", "callTracer")
    assert (plain["error"], plain["output"]) == ("execution reverted", "0x000000")
    assert "revertReason" not in plain


@pytest.mark.parametrize(
    ("init", "error"),
    [
        ("60011f", "invalid opcode: opcode 0x1f not defined"),
        ("600101", "stack underflow (1 <=> 2)"),
        ("600056", "invalid jump destination"),
        # the init code completes, but the gas does not suffice to store the contract of 24,000 bytes
        ("615dc06000f3", "contract creation code storage out of gas"),
    ],
)
def test_a_creation_that_fails_has_no_address(node: Interface, init: str, error: str) -> None:
    (frame,) = trace(node, create(init) + STOP, "callTracer")["calls"]
    assert frame["error"] == error
    assert "to" not in frame
    assert frame["gasUsed"] == frame["gas"]
    assert frame["input"] == "0x" + init


def test_a_creation_where_a_contract_is_already(node: Interface) -> None:
    first, second = trace(node, create("00", 0, salt=1) * 2 + STOP, "callTracer")["calls"]
    assert "error" not in first
    assert (second["error"], second["gasUsed"]) == ("contract address collision", second["gas"])


def test_an_instruction_of_a_later_fork_has_a_name(tmp_path: Path) -> None:
    with open_interface(tmp_path, genesis(ISTANBUL)) as node:
        assert trace(node, "5f", "callTracer")["error"] == "invalid opcode: PUSH0"
        assert trace(node, "fe", "callTracer")["error"] == "invalid opcode: INVALID"


_P = 21888242871839275222246405745257275088696311157297823662689037894645226208583
_ONE, _TWO, _MODULUS, _MOST = (f"{number:064x}" for number in (1, 2, _P, 2**256 - 1))
_INFINITY = "c0" + "00" * 47
_SHORT_THREE = "80" + "00" * 47  # the coordinate x = 0 gives a point of order three


def _proof(commitment: str = _INFINITY, proof: str = _INFINITY, point: str = "00" * 32, value: str = "00" * 32) -> str:
    """Return input of the point evaluation precompile: a proof that a blob has a value at a point, with the right
    hash.
    """
    return "01" + hashlib.sha256(bytes.fromhex(commitment)).hexdigest()[2:] + point + value + commitment + proof


PRECOMPILE_FAILURES = [
    (6, _ONE + _ONE, "bn256: malformed point"),
    (6, _ONE + _MODULUS, "bn256: coordinate equals modulus"),
    (7, _MOST + _TWO + _ONE, "bn256: coordinate exceeds modulus"),
    (8, "00", "bad elliptic curve pairing size"),
    (8, _ONE + _TWO + _ONE * 4, "bn256: malformed point"),
    (8, _ONE + _TWO + _ONE + _MODULUS + _ONE * 2, "bn256: coordinate equals modulus"),
    (9, "00", "invalid input length"),
    (9, "00" * 212 + "02", "invalid final flag"),
    (10, "00", "invalid input length"),
    (10, "00" * 192, "mismatched versioned hash"),
    *(
        (10, text, f"error verifying kzg proof: {words}")
        for text, words in (
            (_proof(value=_ONE), "can't verify opening proof"),
            (_proof(point=_MOST), "scalar is not canonical when interpreted as a big integer in big-endian"),
            (_proof(_SHORT_THREE), "invalid point: subgroup check failed"),
            (_proof(proof=_SHORT_THREE), "invalid point: subgroup check failed"),
            (_proof("80" + "00" * 46 + "01"), "invalid compressed coordinate: square root doesn't exist"),
            (_proof("9f" + "00" * 47), "invalid fp.Element encoding"),
            (_proof("00" * 48), "short buffer"),
            (_proof("e0" + "00" * 47), "invalid point encoding"),
            (_proof("c0" + "00" * 46 + "01"), "invalid infinity point encoding"),
            (_proof("e0" + "00" * 47, "00" * 48), "invalid point encoding"),
        )
    ),
]
"""Failing precompiled contracts: contract, input, and the error text of geth 1.13.15."""

PRAGUE = CANCUN | {
    "pragueTime": 0,
    "blobSchedule": {name: {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477} for name in ("cancun", "prague")},
}
_FIELD = "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab"
_LARGE, _PADDED, _NOTHING = "00" * 16 + _FIELD, "01" * 64, "00" * 64
_NOWHERE = ("00" * 63 + "01") * 2
_THREE = "00" * 127 + "02"
_SOMEWHERE = _NOTHING * 2
_FACTOR = "00" * 32
_TOP_BYTES, _ENCODING = "invalid field element top bytes", "invalid fp.Element encoding"
_OFF, _OUTSIDE = "invalid point: not on curve", "g1 point is not on correct subgroup"
PRAGUE_FAILURES = [
    *((contract, "00", "invalid input length") for contract in range(11, 18)),
    (11, _NOWHERE + _PADDED * 2, _OFF),
    (11, _LARGE + _PADDED + _SOMEWHERE, _ENCODING),
    (11, _SOMEWHERE + _NOTHING + _PADDED, _TOP_BYTES),
    (12, _THREE + _FACTOR, _OUTSIDE),
    (12, _THREE + _FACTOR + _PADDED * 2 + _FACTOR, _OUTSIDE),
    (13, _NOWHERE * 2 + _PADDED * 4, _OFF),
    (14, _PADDED * 4 + _FACTOR, _TOP_BYTES),
    (15, _THREE + _SOMEWHERE * 2, _OUTSIDE),
    (15, _THREE + _NOWHERE * 2, _OFF),
    (16, _LARGE, _ENCODING),
    (17, _LARGE + _PADDED, _ENCODING),
    (17, _NOTHING + _PADDED, _TOP_BYTES),
]
"""Failing precompiled contracts from Prague on: contract, input, and the error text of current geth."""


@pytest.mark.parametrize(
    ("fork", "failures"), [(CANCUN, PRECOMPILE_FAILURES), (PRAGUE, PRAGUE_FAILURES)], ids=["cancun", "prague"]
)
def test_precompiled_contracts_say_why_they_failed(
    tmp_path: Path, fork: dict[str, Any], failures: list[tuple[int, str, str]]
) -> None:
    with open_interface(tmp_path, genesis(fork)) as today:
        for contract, text, words in failures:
            call = {"from": SENDER, "to": f"0x{contract:040x}", "data": "0x" + text, "gas": "0xf4240"}
            frame = today.ask("debug_traceCall", call, "latest", {"tracer": "callTracer"})
            assert frame["error"] == words, (contract, text)


def test_precompiled_contracts_are_frames_like_others(node: Interface) -> None:
    pairing, identity = "0x" + "00" * 19 + "08", "0x" + "00" * 19 + "04"
    code = call(pairing, gas="61ffff", length=3) + call(identity, gas="61ffff", length=3) + STOP
    failed, copied = trace(node, code, "callTracer")["calls"]
    assert (failed["error"], failed["gasUsed"]) == ("bad elliptic curve pairing size", "0xffff")
    assert (copied["gasUsed"], copied["output"]) == ("0x12", "0x000000")


def test_a_self_destruction_is_the_last_frame_of_its_contract(node: Interface) -> None:
    tree = trace(node, call(DIES, 2) + f"73{NOBODY[2:]}ff", "callTracer", value=5)
    dies, end = tree["calls"]
    nothing = {"gas": "0x0", "gasUsed": "0x0", "input": "0x"}
    assert dies["calls"] == [{"type": "SELFDESTRUCT", "from": DIES, "to": HEIR, "value": "0x2", **nothing}]
    assert end == {"type": "SELFDESTRUCT", "from": ROOT, "to": NOBODY, "value": "0x3", **nothing}
    assert "calls" not in trace(node, f"73{NOBODY[2:]}ff", "callTracer", onlyTopCall=True)


def test_logs_stand_where_they_happened_and_those_of_failed_frames_did_not(node: Interface) -> None:
    code = call(LOGS) + "60006000a0" + call(LOGS) + STOP
    tree = trace(node, code, "callTracer", withLog=True)
    assert [log["position"] for log in tree["logs"]] == ["0x1"]
    assert [len(frame["logs"]) for frame in tree["calls"]] == [1, 1]
    failed = trace(node, call(LOGS) + "60006000fd", "callTracer", withLog=True)
    assert "logs" not in failed["calls"][0]


# --- prestateTracer ------------------------------------------------------------------------------


def test_accounts_that_held_nothing_show_only_when_asked_for(node: Interface) -> None:
    code = f"73{NOBODY[2:]}3150" + create("00") + STOP
    assert NOBODY not in trace(node, code, "prestateTracer")
    empty = trace(node, code, "prestateTracer", includeEmpty=True)
    assert empty[NOBODY] == {"balance": "0x0"}
    assert set(empty) > {SENDER, ROOT, NOBODY, BENEFICIARY}


def test_code_can_be_left_out_and_its_hash_cannot(node: Interface) -> None:
    shown = trace(node, call(STORES) + STOP, "prestateTracer", disableCode=True, disableStorage=True)[STORES]
    code_hash = node.ask("web3_sha3", "0x" + CODES[STORES])
    assert shown == {"balance": "0x0", "codeHash": code_hash}


def test_slots_show_as_they_were_and_changes_without_zeros(node: Interface) -> None:
    slots = ["0x" + f"{number:064x}" for number in (0, 7)]
    before = trace(node, call(STORES) + STOP, "prestateTracer")[STORES]
    assert before["storage"] == dict.fromkeys(slots, "0x" + f"{0:064x}")
    changes = trace(node, call(STORES) + STOP, "prestateTracer", diffMode=True)
    assert "storage" not in changes["pre"][STORES]
    assert changes["post"][STORES] == {"storage": {slots[1]: "0x" + f"{42:064x}"}}


def test_a_contract_that_is_gone_is_in_the_state_before_alone(tmp_path: Path) -> None:
    code = call(DIES, 1) + STOP
    with open_interface(tmp_path / "istanbul", genesis(ISTANBUL)) as node:
        changes = trace(node, code, "prestateTracer", value=1, diffMode=True)
        assert DIES in changes["pre"]
        assert DIES not in changes["post"]
        assert changes["post"][HEIR] == {"balance": "0x1"}
        assert HEIR not in changes["pre"]
    # since EIP-6780, SELFDESTRUCT deletes only contracts of the same transaction, and otherwise only transfers ether
    with open_interface(tmp_path / "cancun", genesis(CANCUN)) as node:
        changes = trace(node, code, "prestateTracer", value=1, diffMode=True)
        assert set(changes["post"]) == {SENDER, HEIR}
        again = trace(node, create(f"73{HEIR[2:]}ff", 1) + STOP, "prestateTracer", value=1, diffMode=True)
        assert set(again["post"]) == {SENDER, ROOT, HEIR}


def test_accounts_that_never_existed_have_not_changed(node: Interface) -> None:
    """An account that never existed is not listed as changed, even if a failed creation, a balance lookup or a call
    names it.
    """
    looks = f"73{NOBODY[2:]}3150" + call("0x" + "00" * 19 + "02")
    changes = trace(node, looks + create("60006000fd") + create("00", 9) + STOP, "prestateTracer", diffMode=True)
    assert set(changes["post"]) == {SENDER, ROOT}
    assert set(changes["pre"]) == {SENDER, ROOT}


def test_an_instruction_that_cannot_begin_names_nothing(node: Interface) -> None:
    poor = call("0x" + "d9" * 20, gas="6064") + STOP
    overrides = {"0x" + "d9" * 20: {"code": f"0x73{NOBODY[2:]}31"}, ROOT: {"code": "0x" + poor}}
    options = {"tracer": "prestateTracer", "tracerConfig": {"includeEmpty": True}, "stateOverrides": overrides}
    asked = {"from": SENDER, "to": ROOT, "gas": "0xf4240"}
    assert NOBODY not in node.ask("debug_traceCall", asked, "latest", options)


def test_a_new_contract_is_in_the_state_after_alone(node: Interface) -> None:
    changes = trace(node, create("6001600155600160005360016000f3") + STOP, "prestateTracer", diffMode=True)
    (created,) = changes["post"].keys() - changes["pre"].keys()
    code_hash = node.ask("web3_sha3", "0x01")
    slot = "0x" + f"{1:064x}"
    assert changes["post"][created] == {"nonce": 1, "code": "0x01", "codeHash": code_hash, "storage": {slot: slot}}


# --- 4byteTracer ---------------------------------------------------------------------------------


def test_selectors_are_those_of_calls_that_were_made(node: Interface) -> None:
    identity = "0x" + "00" * 19 + "04"
    word = f"7fa9059cbb{'00' * 28}600052"
    code = word + call(STORES, length=36) * 2 + call(identity, length=36) + call(LOGS, 9, length=36) + STOP
    assert trace(node, code, "4byteTracer", data="0x27dc297e") == {"0x27dc297e-0": 1, "0xa9059cbb-32": 2}
    creation = {"from": SENDER, "gas": "0xf4240", "data": "0x600160005360016000f3"}
    assert node.ask("debug_traceCall", creation, "latest", {"tracer": "4byteTracer"}) == {}


# --- erc7562Tracer -------------------------------------------------------------------------------


def test_the_validation_tracer_shows_what_each_call_accesses(node: Interface) -> None:
    hashed = "6020600020" + "50"
    looked = f"73{STORES[2:]}3b15" + "50" + f"73{LOGS[2:]}3b" + "50"
    tree = trace(node, hashed + looked + call(STORES, gas="61ffff") + "600754" + "5a50" + STOP, "erc7562Tracer")
    (stores,) = tree["calls"]
    assert tree["keccak"] == ["0x" + "00" * 32]
    assert tree["extCodeAccessInfo"] == [LOGS], "EXTCODESIZE before ISZERO only asks whether there is code"
    assert tree["contractSize"][STORES] == {"contractSize": len(CODES[STORES]) // 2, "opcode": 0x3B}
    assert tree["accessedSlots"]["reads"] == {"0x" + f"{7:064x}": ["0x" + "00" * 32]}
    assert stores["accessedSlots"]["writes"] == {"0x" + f"{7:064x}": 1}
    assert stores["accessedSlots"]["reads"] == {"0x" + f"{0:064x}": ["0x" + "00" * 32]}
    assert stores["usedOpcodes"] == {"0x0": 1, "0x54": 1, "0x55": 1}
    assert tree["usedOpcodes"]["0x5a"] == 1, "GAS is counted unless a call follows"
    assert "0x50" not in tree["usedOpcodes"]
    assert (tree["outOfGas"], stores["outOfGas"], "keccak" in stores) == (False, False, False)
    assert tree["type"] == "CALL"


def test_the_validation_tracer_has_options(node: Interface) -> None:
    tree = trace(node, call(LOGS) + STOP, "erc7562Tracer", ignoredOpcodes=["0xf1"], withLog=True)
    assert "0xf1" not in tree["usedOpcodes"]
    assert tree["usedOpcodes"]["0x60"] > 0
    assert tree["calls"][0]["logs"][0]["address"] == LOGS
    assert tree["calls"][0]["accessedSlots"]["writes"] == {}


def test_a_call_without_enough_gas_is_marked(node: Interface) -> None:
    tree = trace(node, call(STORES, gas="610bb8") + STOP, "erc7562Tracer")
    assert tree["calls"][0]["outOfGas"]
    assert not tree["outOfGas"]


def test_a_javascript_tracer_is_refused_with_the_names_of_the_others(node: Interface) -> None:
    options = {"tracer": "{step: function(log) {}, fault: function() {}, result: function() { return 1 }}"}
    error = node.request("debug_traceCall", {"to": ROOT}, "latest", options)["error"]
    assert "JavaScript tracers are not supported. Tracers: callTracer" in error["data"]
    assert "erc7562Tracer" in error["data"]


# --- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tracer", ["callTracer", "flatCallTracer"])
def test_a_trace_whose_calls_copy_too_much_memory_is_refused(node: Interface, tracer: str) -> None:
    """A million gas calls an account about a thousand times, each time with the same 256 KiB of memory."""
    loop = "5b" + "60006000" + "62040000" + "60006000" + "6077" + "611000" + "f1" + "50" + "600056"
    asked = {"from": SENDER, "to": ROOT, "gas": "0xf4240"}
    options = {"tracer": tracer, "stateOverrides": {ROOT: {"code": "0x" + loop}}}
    answer = node.request("debug_traceCall", asked, "latest", options)
    assert "too much input and output for a trace" in answer["error"]["data"]
