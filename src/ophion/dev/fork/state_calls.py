"""`StateCalls`: reads accounts, slots, code and block hashes from the source of a fork in few calls.

`eth_getProof` gives nonce, balance, code hash and any number of slots of an account in one call. Identical code is
requested once. If the node lacks `eth_getProof`, each part is requested separately.
"""

from __future__ import annotations

from typing import Any

from ophion.dev.fork.source_client import METHOD_NOT_FOUND_CODES, ForkSource
from ophion.errors import ForkSourceError
from ophion.native.crypto import keccak256
from ophion.native.fork import ForkState
from ophion.primitives.hexcodec import data
from ophion.runtime.blocking_json_rpc import Call, Failure

_EMPTY_CODE_HASH = "0x" + keccak256(b"").hex()
_NO_CODE_HASHES = (_EMPTY_CODE_HASH, "0x" + 64 * "0", None)
_MAX_EAGER_CODES = 4
"""Maximum number of accounts whose code is requested at once. For more accounts, code hashes are requested first."""


class Answers:
    """Accounts, slots, code and block hashes that the source of a fork has returned."""

    def __init__(self) -> None:
        self.accounts: dict[str, list[Any] | None] = {}
        self.slots: dict[str, dict[str, str]] = {}
        self.codes: dict[str, str] = {}
        """Contract code by code hash."""
        self.hashes: dict[str, str] = {}
        self.extra: list[Any] = []

    def record(self) -> dict[str, Any]:
        """The fetched values as a cache record."""
        parts = {
            "accounts": self.accounts,
            "slots": self.slots,
            "codes": list(self.codes.values()),
            "hashes": self.hashes,
        }
        return {name: part for name, part in parts.items() if part}

    def add_account(self, address: str, nonce: int, balance: str, code_hash: str | None) -> None:
        """Add an account. An empty account is stored as an account that does not exist."""
        code_hash = _EMPTY_CODE_HASH if code_hash in _NO_CODE_HASHES else code_hash
        is_empty = nonce == 0 and int(balance, 16) == 0 and code_hash == _EMPTY_CODE_HASH
        self.accounts[address] = None if is_empty else [nonce, balance, code_hash]


class StateCalls:
    """Fetches accounts, slots and block hashes of the state after one block."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._has_proofs = True

    def fetch(
        self,
        source: ForkSource,
        keys: list[tuple[bytes | None, bytes | None, int | None]],
        state: ForkState,
        extra: list[Call],
    ) -> Answers:
        """Fetch the values of `keys`. The calls in `extra` are sent in the same request."""
        owners: dict[str, list[str]] = {}
        numbers = []
        for address, slot, number in keys:
            if address is None:
                numbers.append(number or 0)
                continue
            slots = owners.setdefault(data(address), [])
            if slot is not None:
                slots.append(data(slot))
        found = Answers()
        if not self._has_proofs:
            found.extra = source.batch(extra) if extra else []
            self._fetch_parts(source, owners, found)
        else:
            self._fetch_proofs(source, owners, state, extra, found)
        if numbers:
            blocks = source.batch([("eth_getBlockByNumber", [hex(number), False]) for number in numbers])
            for number, block in zip(numbers, blocks, strict=True):
                if not isinstance(block, dict):
                    raise self._refused(source, block)
                found.hashes[str(number)] = block["hash"]
        return found

    def _fetch_proofs(
        self, source: ForkSource, owners: dict[str, list[str]], state: ForkState, extra: list[Call], found: Answers
    ) -> None:
        fresh = [owner for owner in owners if not state.knows(bytes.fromhex(owner[2:]))]
        eager = fresh if len(fresh) <= _MAX_EAGER_CODES else []
        calls: list[Call] = [("eth_getProof", [owner, slots, self._tag]) for owner, slots in owners.items()]
        calls += [("eth_getCode", [owner, self._tag]) for owner in eager]
        answers = source.batch(calls + extra)
        found.extra = answers[len(calls) :]
        proofs = dict(zip(owners, answers, strict=False))
        codes = dict(zip(eager, answers[len(owners) :], strict=False))
        refused: dict[str, list[str]] = {}
        unknown: dict[str, str] = {}
        for owner, proof in proofs.items():
            if not isinstance(proof, dict):
                if isinstance(proof, Failure) and proof.code in METHOD_NOT_FOUND_CODES:
                    self._has_proofs = False
                refused[owner] = owners[owner]
                continue
            code_hash = proof.get("codeHash")
            found.add_account(owner, int(proof["nonce"], 16), proof["balance"], code_hash)
            values = [one["value"] for one in proof.get("storageProof") or ()]
            if not values and found.accounts[owner] is None:
                values = ["0x0"] * len(owners[owner])  # some nodes return no slots for an account that does not exist
            if owners[owner]:
                found.slots[owner] = dict(zip(owners[owner], values, strict=True))
            if code_hash in _NO_CODE_HASHES or code_hash in found.codes:
                continue
            if isinstance(codes.get(owner), str):
                found.codes[code_hash] = codes[owner]
            elif not state.knows_code(bytes.fromhex(code_hash[2:])):
                unknown.setdefault(code_hash, owner)
        unknown = {hash: owner for hash, owner in unknown.items() if hash not in found.codes}
        if unknown:
            texts = source.batch([("eth_getCode", [owner, self._tag]) for owner in unknown.values()])
            for code_hash, code in zip(unknown, texts, strict=True):
                if not isinstance(code, str):
                    raise self._refused(source, code)
                found.codes[code_hash] = code
        if refused:
            self._fetch_parts(source, refused, found)

    def _fetch_parts(self, source: ForkSource, owners: dict[str, list[str]], found: Answers) -> None:
        """Request each field of an account separately."""
        calls: list[Call] = []
        for owner, slots in owners.items():
            calls += [
                (method, [owner, self._tag]) for method in ("eth_getTransactionCount", "eth_getBalance", "eth_getCode")
            ]
            calls += [("eth_getStorageAt", [owner, slot, self._tag]) for slot in slots]
        answers = iter(source.batch(calls))
        for owner, slots in owners.items():
            parts = [next(answers) for _ in range(3 + len(slots))]
            wrong = next((part for part in parts if not isinstance(part, str)), None)
            if wrong is not None:
                raise self._refused(source, wrong)
            nonce, balance, code = parts[:3]
            code_hash = "0x" + keccak256(bytes.fromhex(code[2:])).hex()
            found.add_account(owner, int(nonce, 16), balance, code_hash)
            if code_hash != _EMPTY_CODE_HASH:
                found.codes[code_hash] = code
            if slots:
                found.slots[owner] = dict(zip(slots, parts[3:], strict=True))

    def _refused(self, source: ForkSource, answer: Any) -> ForkSourceError:
        reason = answer.message if isinstance(answer, Failure) else "no value"
        return ForkSourceError(
            f"The source of the fork, {source.name}, cannot read the state of block {int(self._tag, 16)}: {reason}."
            " A node keeps old states only as an archive node."
        )
