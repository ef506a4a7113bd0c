"""A genesis file: the rules of a network, its first header and its first accounts (operations.md 4.1).

The Rust extension computes the state root, which callers pass to `Genesis.header`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import BFT_MIX_HASH, EngineKind
from ophion.chainspec.forks import Milestone
from ophion.chainspec.genesis_fields import GenesisObject, LowerCaseObject, as_number, parse_address_lenient, parse_json
from ophion.chainspec.goquorum import is_goquorum, rewrite_goquorum
from ophion.chainspec.spec import ChainSpec, read_spec
from ophion.errors import GenesisError
from ophion.primitives.header import Header
from ophion.primitives.hexcodec import HexError, parse_data_lenient, strip_prefix
from ophion.primitives.types import (
    EMPTY_BLOOM,
    EMPTY_OMMERS_HASH,
    EMPTY_REQUESTS_HASH,
    EMPTY_TRIE_ROOT,
    HASH_LENGTH,
    NONCE_LENGTH,
    ZERO_ADDRESS,
    ZERO_HASH,
    ZERO_NONCE,
    Address,
    Hash32,
)

_MAX_FRACTIONS: Final = 88
_MAX_GAS_LIMIT_BITS: Final = 63


class GenesisAccount(Struct, frozen=True):
    """An account of the genesis state."""

    address: Address
    nonce: int
    balance: int
    code: bytes
    storage: tuple[tuple[Hash32, Hash32], ...]
    """Storage as (slot, value), without zero values."""


class Genesis(Struct, frozen=True):
    """A network and its first block, without the state root."""

    spec: ChainSpec
    difficulty: int
    gas_limit: int
    nonce: bytes
    timestamp: int
    extra_data: bytes
    mix_hash: Hash32
    parent_hash: Hash32
    coinbase: Address
    blob_gas_used: int
    excess_blob_gas: int
    parent_beacon_block_root: Hash32
    accounts: tuple[GenesisAccount, ...]
    warnings: tuple[str, ...] = ()
    """Warnings for the operator, for example about comments and unknown keys."""

    def header(self, state_root: Hash32) -> Header:
        """Return the genesis header. Its fields depend on the forks that are active at the genesis timestamp."""
        fork = self.spec.fork_at(0, self.timestamp, self.difficulty == 0 and _merges(self.spec))
        is_cancun = fork.has(Milestone.CANCUN)
        return Header(
            parent_hash=self.parent_hash,
            ommers_hash=EMPTY_OMMERS_HASH,
            coinbase=self.coinbase,
            state_root=state_root,
            transactions_root=EMPTY_TRIE_ROOT,
            receipts_root=EMPTY_TRIE_ROOT,
            logs_bloom=EMPTY_BLOOM,
            difficulty=self.difficulty,
            number=0,
            gas_limit=self.gas_limit,
            gas_used=0,
            timestamp=self.timestamp,
            extra_data=self.extra_data,
            mix_hash=self.mix_hash,
            nonce=self.nonce,
            base_fee_per_gas=self.spec.initial_base_fee if fork.has(Milestone.LONDON) else None,
            withdrawals_root=EMPTY_TRIE_ROOT if fork.has(Milestone.SHANGHAI) else None,
            blob_gas_used=self.blob_gas_used if is_cancun else None,
            excess_blob_gas=self.excess_blob_gas if is_cancun else None,
            parent_beacon_block_root=self.parent_beacon_block_root if is_cancun else None,
            requests_hash=EMPTY_REQUESTS_HASH if fork.has(Milestone.PRAGUE) else None,
        )


def _merges(spec: ChainSpec) -> bool:
    return spec.terminal_total_difficulty is not None


def parse_genesis(text: bytes | str, is_dev: bool = False, overrides: Iterable[tuple[str, int]] = ()) -> Genesis:
    """Read a genesis file. `GenesisError` names the wrong key in one line.

    `overrides` replace keys of the genesis `config`.
    """
    values, warnings = parse_json(text)
    _override(values, overrides)
    if isinstance(values.get("config"), LowerCaseObject) and is_goquorum(values["config"]):
        warnings += rewrite_goquorum(values["config"])
    top = GenesisObject(values)
    raw_config = values.get("config")
    config = top.child("config") or GenesisObject(LowerCaseObject(), "config")
    base_fee = top.number("baseFeePerGas", bits=256)
    spec = read_spec(
        config, raw_config if isinstance(raw_config, LowerCaseObject) else LowerCaseObject(), base_fee, is_dev
    )
    genesis = _read_block(top, spec)
    unknown = top.unknown()
    if unknown:
        warnings.append(f"Unknown members of the genesis file are ignored: {', '.join(unknown)}")
    return replace(genesis, warnings=(*warnings, *_unusual(genesis)))


def _unusual(genesis: Genesis) -> Iterator[str]:
    """Yield warnings if nonce, difficulty or mix hash of a BFT genesis differ from the values in interface.md. Other
    clients may check these values.
    """
    if genesis.spec.engine not in (EngineKind.IBFT2, EngineKind.QBFT):
        return
    required = {
        "nonce": (genesis.nonce == ZERO_NONCE, "0x0"),
        "difficulty": (genesis.difficulty == 1, "0x1"),
        "mixHash": (genesis.mix_hash == BFT_MIX_HASH, f"0x{BFT_MIX_HASH.hex()}"),
    }
    others = [f"{name} {expected}" for name, (is_expected, expected) in required.items() if not is_expected]
    if others:
        yield (
            f"The genesis of a {genesis.spec.engine.value} network should have {', '.join(others)}; this one has not, "
            "and other clients may refuse it."
        )


def _override(values: LowerCaseObject, overrides: Iterable[tuple[str, int]]) -> None:
    config = values.get("config")
    if isinstance(config, LowerCaseObject):
        for name, number in overrides:
            config[name.lower()] = number
            config.spelling.setdefault(name.lower(), name)


def _excess_blob_gas(top: GenesisObject, spec: ChainSpec) -> int:
    """Read the excess blob gas. The value must be below 88 times the smallest update fraction, so that the blob base
    fee fits into 127 bits.
    """
    excess = top.number("excessBlobGas") or 0
    most = _MAX_FRACTIONS * min(one.fee_fraction for one in spec.forks.blob_schedule.values())
    if excess >= most:
        raise top.invalid("excessBlobGas", excess, f"makes the blob price too high; at most {most - 1}")
    return excess


def _read_block(top: GenesisObject, spec: ChainSpec) -> Genesis:
    gas_limit = top.number("gasLimit", bits=_MAX_GAS_LIMIT_BITS)
    if gas_limit is None:
        gas_limit = top.number("gasTarget", bits=_MAX_GAS_LIMIT_BITS)
    else:
        top.get("gasTarget")
    difficulty = top.number("difficulty", bits=256)
    if difficulty is None:
        raise top.missing("difficulty")
    if gas_limit is None:
        raise top.missing("gasLimit")
    for name in ("number", "gasUsed"):
        value = top.number(name)
        if value:
            raise top.invalid(name, value, "a genesis block has 0")
    return Genesis(
        spec=spec,
        difficulty=difficulty,
        gas_limit=gas_limit,
        nonce=(top.hex_number("nonce") or 0).to_bytes(NONCE_LENGTH, "big"),
        timestamp=top.number("timestamp") or 0,
        extra_data=top.data("extraData") or b"",
        mix_hash=_hash(top, "mixHash"),
        parent_hash=_hash(top, "parentHash"),
        coinbase=top.address("coinbase") or ZERO_ADDRESS,
        blob_gas_used=top.number("blobGasUsed") or 0,
        excess_blob_gas=_excess_blob_gas(top, spec),
        parent_beacon_block_root=_hash(top, "parentBeaconBlockRoot"),
        accounts=_read_accounts(top),
    )


def _hash(top: GenesisObject, name: str) -> Hash32:
    value = top.data(name)
    if not value:
        return ZERO_HASH
    if len(value) != HASH_LENGTH:
        raise top.invalid(name, top.get(name), f"must have {HASH_LENGTH} bytes")
    return value


def _read_accounts(top: GenesisObject) -> tuple[GenesisAccount, ...]:
    alloc = top.child("alloc")
    if alloc is None:
        return ()
    accounts: dict[Address, GenesisAccount] = {}
    for key in alloc.names():
        try:
            address = parse_address_lenient(key)
        except HexError as error:
            raise top.invalid("alloc", key, f"as an address: {error.problem}") from error
        if address in accounts:
            raise top.invalid("alloc", key, "the account appears twice")
        value = alloc.get(key)
        if not isinstance(value, LowerCaseObject):
            raise alloc.invalid(key, value, "must be an object")
        # use a separate `GenesisObject` per account, so that unknown keys of accounts (privateKey, comment) cause no
        # warning
        accounts[address] = _read_account(address, GenesisObject(value, alloc.path(key)))
    return tuple(accounts.values())


def _read_account(address: Address, entry: GenesisObject) -> GenesisAccount:
    return GenesisAccount(
        address=address,
        nonce=entry.hex_number("nonce") or 0,
        balance=entry.number("balance", bits=256) or 0,
        code=entry.data("code") or b"",
        storage=_read_storage(entry),
    )


def _read_storage(entry: GenesisObject) -> tuple[tuple[Hash32, Hash32], ...]:
    values = entry.get("storage")
    if values is None:
        return ()
    if not isinstance(values, LowerCaseObject):
        raise entry.invalid("storage", values, "must be an object")
    slots: dict[Hash32, Hash32] = {}
    for key, value in values.items():
        values.refuse_repeated(key)
        slot = _word(key)
        word = _word(value)
        if slot is None or word is None:
            raise entry.invalid(f"storage.{key}", value, "slot and value must be hexadecimal of at most 32 bytes")
        if slot in slots:
            raise entry.invalid(f"storage.{key}", value, "the slot appears twice")
        slots[slot] = word
    return tuple((slot, word) for slot, word in slots.items() if any(word))


def _word(value: Any) -> Hash32 | None:
    """Read 32 bytes from a JSON number or from hexadecimal text, which may be shorter."""
    if isinstance(value, str):
        digits = strip_prefix(value)
        if len(digits) > 2 * HASH_LENGTH:
            return None
        try:
            return parse_data_lenient(digits.rjust(2 * HASH_LENGTH, "0"))
        except HexError:
            return None
    number = as_number(value)
    if number is None or not 0 <= number < 2 ** (8 * HASH_LENGTH):
        return None
    return number.to_bytes(HASH_LENGTH, "big")


def check_stored(given: Hash32, stored: Hash32) -> None:
    """Raise an error if the genesis hash `given` differs from `stored`, the genesis hash in the database."""
    if given != stored:
        raise GenesisError(
            "Supplied genesis block does not match stored chain data. "
            f"Supplied: 0x{given.hex()}, stored: 0x{stored.hex()}. "
            "Use another data path (--data-path) or the original genesis file (--genesis-file)."
        )
