"""Parameters of the consensus engines in a genesis file.

Parameters are plain data: the engine decides what a transition means and when it applies. The reader also accepts the
spelling `duplicateMesageLimit` of the Besu documentation.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

from ophion.chainspec.genesis_fields import GenesisObject
from ophion.primitives.hexcodec import HexError, parse_data_lenient
from ophion.primitives.types import ADDRESS_LENGTH, Address

DEFAULT_EPOCH_LENGTH: Final = 30_000
MIN_BLOCK_PERIOD_MS: Final = 100
"""Minimum block period in milliseconds. A round needs three message delays and a disk write of votes."""


BFT_MIX_HASH: Final = b"ctical byzantine fault tolerance"
"""The mix hash of IBFT 2.0 and QBFT headers."""


class EngineKind(Enum):
    """Consensus engine of a genesis. If a genesis names several engines, the first in this order applies.

    Exception: `clique` applies before `qbft` if `qbft` has a start block.
    """

    ETHASH = "ethash"
    IBFT2 = "ibft2"
    IBFT = "ibft"
    QBFT = "qbft"
    CLIQUE = "clique"


class EthashParameters(Struct, frozen=True):
    """Parameters of proof of work."""

    fixed_difficulty: int | None = None
    """Fixed difficulty of every block. If None, the formulas of the main network apply."""


class CliqueTransition(Struct, frozen=True):
    """A change of Clique parameters at a block. A parameter that is None keeps its previous value."""

    block: int
    period_s: int | None
    create_empty_blocks: bool | None


class CliqueParameters(Struct, frozen=True):
    """Parameters of Clique, proof of authority (EIP-225)."""

    period_s: int = 15
    """Minimum seconds between blocks. With 0 (geth only), a block is sealed as soon as a transaction is pending."""
    epoch_length: int = DEFAULT_EPOCH_LENGTH
    """Number of blocks from one epoch block to the next. Epoch blocks reset votes and list the signers."""
    create_empty_blocks: bool = True
    transitions: tuple[CliqueTransition, ...] = ()

    def period_at(self, number: int) -> int:
        """Return the minimum number of seconds between this block and its parent."""
        period = self.period_s
        for transition in self.transitions:
            if transition.block <= number and transition.period_s is not None:
                period = transition.period_s
        return period

    def creates_empty_blocks_at(self, number: int) -> bool:
        """Whether the signer of this block seals a block if no transactions are pending."""
        allowed = self.create_empty_blocks
        for transition in self.transitions:
            if transition.block <= number and transition.create_empty_blocks is not None:
                allowed = transition.create_empty_blocks
        return allowed


class ValidatorSelection(Enum):
    """Source of the validators of a QBFT network."""

    BLOCK_HEADER = "blockheader"
    CONTRACT = "contract"


class HeaderForm(Enum):
    """The header fields after the base fee in BFT headers from Shanghai on; see `consensus.bft_header_form`."""

    FULL = "full"
    """Headers have all fields of the active forks."""
    SHORT = "short"
    """Headers have no fields after the base fee."""
    SHORT_BLOBS = "short-blobs"
    """Headers have no fields after the base fee in Shanghai, and both blob gas fields from Cancun on."""


class BftTransition(Struct, frozen=True):
    """A change of BFT parameters. A parameter that is None keeps its previous value."""

    block: int
    """Block number, or a timestamp if the nearest earlier fork activates by time (consensus.md 5.5)."""
    validators: tuple[Address, ...] | None = None
    block_period_s: int | None = None
    block_period_ms: int | None = None
    empty_block_period_s: int | None = None
    block_reward: int | None = None
    sets_mining_beneficiary: bool = False
    """Whether the transition sets the beneficiary. An empty address clears the beneficiary."""
    mining_beneficiary: Address | None = None
    validator_selection: ValidatorSelection | None = None
    validator_contract: Address | None = None


class BftParameters(Struct, frozen=True):
    """Parameters of IBFT 2.0 and QBFT."""

    block_period_s: int = 1
    epoch_length: int = DEFAULT_EPOCH_LENGTH
    request_timeout_s: int = 1
    """Timeout of round 0 in seconds. The timeout doubles with each further round."""
    message_queue_limit: int = 1000
    duplicate_message_limit: int = 100
    future_messages_limit: int = 1000
    future_messages_max_distance: int = 10
    gossiped_history_limit: int = 1000
    block_reward: int = 0
    """Block reward in wei."""
    mining_beneficiary: Address | None = None
    """Address that receives fees and reward instead of the proposer."""
    block_period_ms: int = 0
    """Block period in milliseconds. A value above 0 applies instead of the period in seconds."""
    empty_block_period_s: int = 0
    """Seconds between empty blocks in QBFT. With 0, empty blocks have the same period as other blocks."""
    validator_contract: Address | None = None
    """Contract that lists the validators of a QBFT network."""
    start_block: int = 0
    """First QBFT block after a migration from IBFT 2.0 or Clique. With 0, the network has no migration."""
    header_form: HeaderForm | None = None
    """Fields that the first header from Shanghai on contains; None if the genesis does not specify them."""
    transitions: tuple[BftTransition, ...] = ()


def read_ethash(members: GenesisObject) -> EthashParameters:
    """Read `config.ethash`."""
    return EthashParameters(members.number("fixeddifficulty", bits=256, minimum=1))


def read_clique(members: GenesisObject, transitions: list[GenesisObject]) -> CliqueParameters:
    """Read `config.clique`. Geth's spellings `period` and `epoch` are accepted too."""
    period = members.number("blockperiodseconds", bits=31, minimum=1)
    epoch = members.number("epochlength", bits=63, minimum=1)
    # only geth's `period` may be 0, which means that a signer makes a block whenever transactions are pending
    geth_period = members.number("period", bits=31)
    geth_epoch = members.number("epoch", bits=63, minimum=1)
    if period is not None and geth_period is not None and period != geth_period:
        raise members.invalid("period", geth_period, f"blockperiodseconds says {period}")
    if epoch is not None and geth_epoch is not None and epoch != geth_epoch:
        raise members.invalid("epoch", geth_epoch, f"epochlength says {epoch}")
    default = CliqueParameters()
    create_empty = members.flag("createemptyblocks") if members.has("createemptyblocks") else True
    return CliqueParameters(
        period_s=_first(period, geth_period, default.period_s),
        epoch_length=_first(epoch, geth_epoch, default.epoch_length),
        create_empty_blocks=create_empty,
        transitions=tuple(_read_clique_transition(entry) for entry in _by_block(transitions)),
    )


def _read_clique_transition(entry: GenesisObject) -> CliqueTransition:
    return CliqueTransition(
        block=entry.number("block", minimum=1) or 0,
        period_s=entry.number("blockperiodseconds", bits=31, minimum=1),
        create_empty_blocks=entry.flag("createemptyblocks") if entry.has("createemptyblocks") else None,
    )


def read_bft(members: GenesisObject, transitions: list[GenesisObject]) -> BftParameters:
    """Read `config.ibft2`, `config.qbft` or `config.ibft`."""
    default = BftParameters()
    duplicate_limit = members.number("duplicatemessagelimit", bits=31, minimum=1)
    misspelled_limit = members.number("duplicatemesagelimit", bits=31, minimum=1)
    return BftParameters(
        block_period_s=_first(members.number("blockperiodseconds", bits=31, minimum=1), default.block_period_s),
        epoch_length=_first(members.number("epochlength", bits=63, minimum=1), default.epoch_length),
        request_timeout_s=_first(
            members.number("requesttimeoutseconds", bits=31, minimum=1), default.request_timeout_s
        ),
        message_queue_limit=_first(
            members.number("messagequeuelimit", bits=31, minimum=1), default.message_queue_limit
        ),
        duplicate_message_limit=_first(duplicate_limit, misspelled_limit, default.duplicate_message_limit),
        future_messages_limit=_first(members.number("futuremessageslimit", bits=31), default.future_messages_limit),
        future_messages_max_distance=_first(
            members.number("futuremessagesmaxdistance", bits=31), default.future_messages_max_distance
        ),
        gossiped_history_limit=_first(members.number("gossipedhistorylimit", bits=31), default.gossiped_history_limit),
        block_reward=_first(members.number("blockreward", bits=256), default.block_reward),
        mining_beneficiary=members.address("miningbeneficiary"),
        block_period_ms=_first(_read_period_ms(members), default.block_period_ms),
        empty_block_period_s=_first(_read_empty_period_s(members), default.empty_block_period_s),
        validator_contract=members.address("validatorcontractaddress"),
        start_block=_first(members.number("startblock", bits=63), default.start_block),
        header_form=_read_header_form(members),
        transitions=tuple(_read_bft_transition(entry) for entry in _by_block(transitions)),
    )


def _read_period_ms(members: GenesisObject) -> int | None:
    """Read the block period in milliseconds. Besu's experimental spelling (with a leading x) has no minimum."""
    period = members.number("blockperiodmilliseconds", bits=31)
    if period is not None and 0 < period < MIN_BLOCK_PERIOD_MS:
        raise members.invalid("blockperiodmilliseconds", period, f"0 or at least {MIN_BLOCK_PERIOD_MS}")
    besu_period = members.number("xblockperiodmilliseconds", bits=31)
    return besu_period if period is None else period


def _read_empty_period_s(members: GenesisObject) -> int | None:
    """Read the period of empty blocks. Besu before 26.5 spells the key with a leading x; the newer spelling has
    priority.
    """
    period = members.number("emptyblockperiodseconds", bits=31)
    besu_period = members.number("xemptyblockperiodseconds", bits=31)
    return besu_period if period is None else period


def _read_header_form(members: GenesisObject) -> HeaderForm | None:
    text = members.text("headerform")
    if text is None:
        return None
    try:
        return HeaderForm(text.lower())
    except ValueError as error:
        expected = ", ".join(form.value for form in HeaderForm)
        raise members.invalid("headerform", text, f"one of {expected}") from error


def _read_bft_transition(entry: GenesisObject) -> BftTransition:
    selection_text = entry.text("validatorselectionmode")
    selection = None
    if selection_text is not None:
        try:
            selection = ValidatorSelection(selection_text.lower())
        except ValueError as error:
            raise entry.invalid("validatorselectionmode", selection_text, "blockheader or contract") from error
    validators = _read_validators(entry)
    contract = entry.address("validatorcontractaddress")
    if selection is ValidatorSelection.BLOCK_HEADER and not validators:
        raise entry.missing("validators")
    if selection is ValidatorSelection.CONTRACT and contract is None:
        raise entry.missing("validatorcontractaddress")
    return BftTransition(
        block=entry.number("block", minimum=1) or 0,
        validators=validators,
        block_period_s=entry.number("blockperiodseconds", bits=31, minimum=1),
        block_period_ms=_read_period_ms(entry),
        empty_block_period_s=_read_empty_period_s(entry),
        block_reward=entry.number("blockreward", bits=256),
        sets_mining_beneficiary=entry.has("miningbeneficiary"),
        mining_beneficiary=entry.address("miningbeneficiary"),
        validator_selection=selection,
        validator_contract=contract,
    )


def _read_validators(entry: GenesisObject) -> tuple[Address, ...] | None:
    values = entry.get("validators")
    if values is None:
        return None
    if not isinstance(values, list):
        raise entry.invalid("validators", values, "must be a list of addresses")
    addresses = []
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise entry.invalid(f"validators[{index}]", value, "must be an address")
        try:
            addresses.append(parse_data_lenient(value, ADDRESS_LENGTH))
        except HexError as error:
            raise entry.invalid(f"validators[{index}]", value, error.problem) from error
    if not addresses or len(set(addresses)) != len(addresses):
        raise entry.invalid("validators", values, "at least one is needed, without duplicates")
    return tuple(addresses)


def _by_block(transitions: list[GenesisObject]) -> list[GenesisObject]:
    """Return the transitions sorted by block. Raises an error if a block is missing, not positive or repeated."""
    seen: set[int] = set()
    keyed: list[tuple[int, GenesisObject]] = []
    for entry in transitions:
        block = entry.number("block", minimum=1)
        if block is None:
            raise entry.missing("block")
        if block in seen:
            raise entry.invalid("block", block, "two transitions at one block")
        seen.add(block)
        keyed.append((block, entry))
    keyed.sort(key=lambda pair: pair[0])
    return [entry for _, entry in keyed]


def _first(*values: int | None) -> int:
    """Return the first value that is not None. The last value is never None."""
    return next(value for value in values if value is not None)
