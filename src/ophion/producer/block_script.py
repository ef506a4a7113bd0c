"""Blocks from a JSON description, for small hand-written test chains (operations.md 3).

    {"blocks": [{"number": "0x1", "parentHash": ..., "coinbase": ..., "extraData": ..., "transactions": [
        {"gasLimit": ..., "gasPrice": ..., "data": ..., "value": ..., "to": ..., "secretKey": ...}]}]}

Keys of the objects are optional, and their names are case-insensitive. Without a parent hash, a block follows the
previous block of the file. Each transaction gets its sender's next nonce. The keys in the file sign the transactions.
Each block is built, sealed with proof of work and imported like a block of a peer. Only proof of work is supported,
because other networks need the keys of their validators.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from ophion.chain.block_builder import BlockBuilder
from ophion.chain.block_import import ImportCore
from ophion.chain.import_file import ImportProgress
from ophion.chainspec.consensus_parameters import EngineKind
from ophion.consensus.engine import BlockPreferences
from ophion.errors import CommandError, KeyFileError
from ophion.native.crypto import PrivateKey, keccak256
from ophion.native.ethash import ethash_search
from ophion.native.executor import State
from ophion.native.transactions import Transaction, decode_transactions
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.hexcodec import HexError, parse_data_lenient, parse_number
from ophion.primitives.types import ZERO_ADDRESS, Address
from ophion.runtime.clock import Clock

_BUILD_DEADLINE_S: Final = 60.0
_ATTEMPTS: Final = 4096
_MAX_EXTRA_DATA: Final = 32
_UNPROTECTED: Final = 27
"""`v` of a signature without chain id."""


class BlockScript:
    """Builds the blocks of a description and imports them."""

    def __init__(
        self, core: ImportCore, clock: Clock, with_work: bool = True, on_commit: Callable[[], None] | None = None
    ) -> None:
        spec = core.chain.spec
        if spec.engine is not EngineKind.ETHASH or spec.terminal_total_difficulty is not None:
            raise CommandError(f"Unable to create block using current consensus engine: {core.chain.engine.name}")
        self._core = core
        self._clock = clock
        self._builder = BlockBuilder(core.chain, keeps_revert_data=False)
        self._needs_work = with_work and not spec.is_dev
        self._on_commit = on_commit
        self._made: list[HashedHeader] = []
        self._progress = ImportProgress()

    def run(self, text: bytes) -> ImportProgress:
        """Build and import every block of a description. After an error, the blocks before the invalid block stay."""
        for position, members in enumerate(_blocks(text)):
            self._make(_ScriptReader(members, f"blocks[{position}]"))
        return self._progress

    def _make(self, block: _ScriptReader) -> None:
        parent = self._parent(block)
        state = self._core.state_after(parent)
        transactions = _transactions(block, state)
        extra_data = block.data("extraData")
        if len(extra_data) > _MAX_EXTRA_DATA:
            raise block.wrong("extraData", f"more than {_MAX_EXTRA_DATA} bytes")
        author = block.data("coinbase", 20) or ZERO_ADDRESS
        draft = self._builder.draft(parent, BlockPreferences(int(self._clock.now()), author, extra_data))
        built = self._builder.fill(draft, state, transactions, _BUILD_DEADLINE_S)
        if built.body.transaction_count != len(transactions):
            reasons = "".join(f"; {block.place}.transactions[{place}]: {why}" for place, why in built.skipped)
            missing = len(transactions) - built.body.transaction_count
            raise CommandError(f"Unable to create block.  {missing} transaction(s) were found to be invalid{reasons}.")
        header = self._core.chain.engine.hashed(self._sealed(built.header))
        self._core.stage(header, built.body)
        change = self._core.commit()
        if change is not None:
            self._core.chain.advance(change, {})
            if self._on_commit is not None:
                self._on_commit()
        self._made.append(header)
        self._progress.blocks += 1
        self._progress.transactions += len(transactions)
        self._progress.gas += header.header.gas_used
        self._progress.number = header.number

    def _parent(self, block: _ScriptReader) -> HashedHeader:
        parent_hash, number = block.data("parentHash", 32), block.number("number")
        if parent_hash:
            found = self._core.header(parent_hash)
            if found is None:
                raise CommandError(f"Unable to locate block parent at 0x{parent_hash.hex()}")
            return found
        if number is None:
            return self._made[-1] if self._made else self._core.chain.genesis
        # search the blocks of this script first, because they may form a branch beside the canonical chain
        for made in self._made:
            if made.number == number - 1:
                return made
        found = self._core.chain.canonical(number - 1) if number else None
        if found is None:
            raise CommandError(f"Unable to locate block parent at {number - 1}")
        return found

    def _sealed(self, header: Header) -> Header:
        if not self._needs_work:
            return header
        seal_hash, nonce = self._core.chain.engine.signing_hash(header), 0
        while True:
            found = ethash_search(seal_hash, header.number, header.difficulty, nonce, _ATTEMPTS, os.cpu_count() or 1)
            if found is not None:
                return replace(header, nonce=found[0].to_bytes(8, "big"), mix_hash=found[1])
            nonce += _ATTEMPTS


class _ScriptReader:
    """Reads the keys of one JSON object. `place` is the position of the object in the file, for error messages."""

    def __init__(self, members: Mapping[str, Any], place: str) -> None:
        self._members = members
        self.place = place

    def number(self, name: str) -> int | None:
        text = self._text(name)
        try:
            return None if text is None else parse_number(text)
        except HexError as error:
            raise self.wrong(name, error.problem) from None

    def data(self, name: str, size: int | None = None) -> bytes:
        """Return the bytes under a key, or empty bytes if the key is missing."""
        text = self._text(name)
        try:
            return b"" if text is None else parse_data_lenient(text, size)
        except HexError as error:
            raise self.wrong(name, error.problem) from None

    def needed(self, name: str) -> int:
        found = self.number(name)
        if found is None:
            raise self.wrong(name, "missing")
        return found

    def objects(self, name: str) -> list[_ScriptReader]:
        value = self._members.get(name.lower()) or []
        return [
            _ScriptReader(one, f"{self.place}.{name}[{position}]") for position, one in enumerate(_objects(value, self))
        ]

    def wrong(self, name: str, problem: str) -> CommandError:
        return CommandError(f"Invalid block description: {self.place}.{name}: {problem}")

    def _text(self, name: str) -> str | None:
        value = self._members.get(name.lower())
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(name, "expected hexadecimal text")


def _blocks(text: bytes) -> Sequence[Mapping[str, Any]]:
    try:
        content = json.loads(text, object_pairs_hook=lambda pairs: {name.lower(): value for name, value in pairs})
    except (ValueError, RecursionError) as error:
        raise CommandError(f"Invalid block description: {error}") from error
    if not isinstance(content, dict) or "blocks" not in content:
        raise CommandError('Invalid block description: expected {"blocks": [...]}')
    return _objects(content["blocks"], _ScriptReader(content, "blocks"))


def _objects(value: Any, where: _ScriptReader) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise CommandError(f"Invalid block description: {where.place}: expected an array of objects")
    return value


def _transactions(block: _ScriptReader, state: State) -> list[Transaction]:
    """Return the signed transactions of a block, each with its sender's next nonce."""
    used: Counter[Address] = Counter()
    found: list[Transaction] = []
    for one in block.objects("transactions"):
        try:
            key = PrivateKey(one.data("secretKey", 32))
        except KeyFileError:
            raise one.wrong("secretKey", "not a private key") from None
        nonce = state.nonce(key.address) + used[key.address]
        used[key.address] += 1
        fields = [
            rlp.scalar(nonce),
            rlp.scalar(one.needed("gasPrice")),
            rlp.scalar(one.needed("gasLimit")),
            one.data("to", 20),
            rlp.scalar(one.number("value") or 0),
            one.data("data"),
        ]
        signature = key.sign(keccak256(rlp.encode(fields)))
        r, s = signature[:32].lstrip(b"\0"), signature[32:64].lstrip(b"\0")
        [decoded] = decode_transactions([rlp.encode([*fields, rlp.scalar(signature[64] + _UNPROTECTED), r, s])])
        if isinstance(decoded, str):
            raise CommandError(f"Invalid block description: {one.place}: {decoded}")
        found.append(decoded)
    return found
