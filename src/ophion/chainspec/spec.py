"""`ChainSpec`: all rules of a network in one frozen value.

`read_spec` reads the specification from `config` of a genesis file (keys of consensus.md 5.4). The function refuses
rules that Ophion does not support, so that a node does not fail at a later block.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from msgspec import Struct, field

from ophion.chainspec.consensus_parameters import (
    BftParameters,
    CliqueParameters,
    EngineKind,
    EthashParameters,
    read_bft,
    read_clique,
    read_ethash,
)
from ophion.chainspec.forks import DEFAULT_BLOB_SCHEDULE, BlobParameters, Fork, ForkSchedule, Milestone
from ophion.chainspec.genesis_fields import GenesisObject, LowerCaseObject
from ophion.errors import GenesisError
from ophion.primitives.header import Header
from ophion.primitives.types import WEI_PER_GWEI, Address

DEFAULT_BASE_FEE: Final = WEI_PER_GWEI
_STACK_SIZE: Final = 1024

BLOCK_FORKS: Final = (
    ("homesteadBlock", Milestone.HOMESTEAD),
    ("daoForkBlock", None),
    ("eip150Block", Milestone.TANGERINE),
    ("eip158Block", Milestone.SPURIOUS),
    ("byzantiumBlock", Milestone.BYZANTIUM),
    ("constantinopleBlock", Milestone.CONSTANTINOPLE),
    ("petersburgBlock", Milestone.PETERSBURG),
    ("istanbulBlock", Milestone.ISTANBUL),
    ("muirGlacierBlock", Milestone.MUIR_GLACIER),
    ("berlinBlock", Milestone.BERLIN),
    ("londonBlock", Milestone.LONDON),
    ("arrowGlacierBlock", Milestone.ARROW_GLACIER),
    ("grayGlacierBlock", Milestone.GRAY_GLACIER),
    ("mergeNetSplitBlock", None),
)
TIME_FORKS: Final = (
    ("shanghaiTime", Milestone.SHANGHAI),
    ("cancunTime", Milestone.CANCUN),
    ("pragueTime", Milestone.PRAGUE),
    ("osakaTime", Milestone.OSAKA),
    ("bpo1Time", Milestone.BPO1),
    ("bpo2Time", Milestone.BPO2),
    ("bpo3Time", Milestone.BPO3),
    ("bpo4Time", Milestone.BPO4),
    ("bpo5Time", Milestone.BPO5),
)
_UNSUPPORTED_FORKS: Final = ("amsterdamTime", "futureEipsTime", "experimentalEipsTime")
# these keys have no effect, or only other clients read them, so they cause no warning
_WITHOUT_EFFECT: Final = ("eip150Hash", "eip155Block", "terminalTotalDifficultyPassed")


class ChainSpec(Struct, frozen=True):
    """The rules of one network, read from its genesis file: forks, consensus engine and their parameters."""

    chain_id: int
    engine: EngineKind
    forks: ForkSchedule
    ethash: EthashParameters | None = None
    clique: CliqueParameters | None = None
    ibft2: BftParameters | None = None
    qbft: BftParameters | None = None
    terminal_total_difficulty: int | None = None
    """Total difficulty that ends proof of work; None if the network never merges."""
    dao_fork_block: int | None = None
    """Block of the DAO fork; None if the network has no DAO fork."""
    contract_size_limit: int | None = None
    """Maximum code size of a contract. If None, the limit of the fork applies (24,576 bytes from Spurious Dragon on).
    """
    zero_base_fee: bool = False
    """Whether the base fee is 0 in every block after genesis. With this option, the base fee of headers is not checked.
    """
    fixed_base_fee: bool = False
    """Whether the base fee is the node's minimum gas price. With this option, the base fee of headers is not checked.
    """
    has_free_gas_limit: bool = False
    """Whether the gas limit may move by any amount from block to block, as under GoQuorum's QBFT."""
    initial_base_fee: int = DEFAULT_BASE_FEE
    """Base fee of the first London block."""
    deposit_contract: Address | None = None
    withdrawal_request_contract: Address | None = None
    consolidation_request_contract: Address | None = None
    bootnodes: tuple[str, ...] = ()
    names_chain_id: bool = True
    """Whether the genesis has a chain id. Without a chain id, transactions and code use a default."""
    is_dev: bool = False
    """Whether this is the built-in development network, whose blocks need no proof of work."""
    fork_blocks: tuple[int, ...] = ()
    """Distinct fork blocks above 0 in ascending order. Part of the fork id (EIP-2124)."""
    fork_times: tuple[int, ...] = ()
    """Distinct fork times above 0 in ascending order. Part of the fork id."""
    config: dict[str, Any] = field(default_factory=dict)
    """The `config` object as written, for display only."""

    @property
    def migrates_from_clique(self) -> bool:
        """Whether the chain moves from Clique to QBFT at `qbft.start_block`."""
        return self.engine is EngineKind.CLIQUE and self.qbft is not None and self.qbft.start_block > 0

    @property
    def migration_block(self) -> int | None:
        """First QBFT block of a chain that begins with another engine; None if the chain has no migration."""
        if self.engine not in (EngineKind.CLIQUE, EngineKind.IBFT2) or self.qbft is None:
            return None
        return self.qbft.start_block or None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ChainSpec):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__ if name != "config")

    def fork_at(self, number: int, timestamp: int, merged: bool = False) -> Fork:
        """Return the rules of the block with this number and timestamp. See `ForkSchedule.at`."""
        return self.forks.at(number, timestamp, merged)

    def fork_of(self, header: Header) -> Fork:
        """Return the rules of a block. Difficulty zero means that the block is after the merge."""
        merged = header.difficulty == 0 and self.terminal_total_difficulty is not None
        return self.forks.at(header.number, header.timestamp, merged)


def read_spec(config: GenesisObject, raw: LowerCaseObject, initial_base_fee: int | None, is_dev: bool) -> ChainSpec:
    """Read the specification from a `config` object."""
    engine = _engine(config)
    transitions = config.child("transitions")
    entries = {
        kind: transitions.children(kind.value) if transitions is not None else []
        for kind in (EngineKind.CLIQUE, EngineKind.IBFT2, EngineKind.QBFT)
    }
    ethash, clique = config.child("ethash"), config.child("clique")
    ibft2, qbft = config.child("ibft2"), config.child("qbft")
    chain_id = config.number("chainId")
    forks, dao_fork_block, fork_blocks, fork_times = _schedule(config)
    spec = ChainSpec(
        chain_id=chain_id if chain_id is not None else 4 if engine is EngineKind.CLIQUE else 1,
        engine=engine,
        forks=forks,
        ethash=read_ethash(ethash) if ethash is not None else None,
        clique=read_clique(clique, entries[EngineKind.CLIQUE]) if clique is not None else None,
        ibft2=read_bft(ibft2, entries[EngineKind.IBFT2]) if ibft2 is not None else None,
        qbft=read_bft(qbft, entries[EngineKind.QBFT]) if qbft is not None else None,
        terminal_total_difficulty=config.number("terminalTotalDifficulty", bits=256),
        dao_fork_block=dao_fork_block,
        contract_size_limit=config.number("contractSizeLimit", bits=31, minimum=1),
        zero_base_fee=config.flag("zeroBaseFee"),
        fixed_base_fee=config.flag("fixedBaseFee"),
        has_free_gas_limit=config.flag("freeGasLimit"),
        initial_base_fee=initial_base_fee if initial_base_fee is not None else DEFAULT_BASE_FEE,
        deposit_contract=config.address("depositContractAddress"),
        withdrawal_request_contract=config.address("withdrawalRequestContractAddress"),
        consolidation_request_contract=config.address("consolidationRequestContractAddress"),
        bootnodes=_bootnodes(config),
        names_chain_id=chain_id is not None,
        is_dev=is_dev,
        fork_blocks=fork_blocks,
        fork_times=fork_times,
        config=_unfolded(raw),
    )
    _refuse_what_cannot_be(config, spec)
    return spec


def _engine(config: GenesisObject) -> EngineKind:
    for kind in EngineKind:
        if config.has(kind.value):
            is_late = kind is EngineKind.QBFT and config.has(EngineKind.CLIQUE.value) and _start_block(config) > 0
            return EngineKind.CLIQUE if is_late else kind
    raise GenesisError("Unknown consensus mechanism defined", "config")


def _start_block(config: GenesisObject) -> int:
    qbft = config.child(EngineKind.QBFT.value)
    return (0 if qbft is None else qbft.number("startblock", bits=63)) or 0


def _schedule(config: GenesisObject) -> tuple[ForkSchedule, int | None, tuple[int, ...], tuple[int, ...]]:
    if config.has("petersburgBlock") and config.has("constantinopleFixBlock"):
        raise config.invalid(
            "constantinopleFixBlock", config.get("constantinopleFixBlock"), "petersburgBlock is given too"
        )
    for key in _UNSUPPORTED_FORKS:
        if config.has(key):
            raise config.invalid(key, config.get(key), "this fork is not supported")
    blocks: dict[Milestone, int] = {}
    times: dict[Milestone, int] = {}
    dao_fork_block = None
    numbers: list[tuple[str, int]] = []
    for key, milestone in BLOCK_FORKS:
        name = "constantinopleFixBlock" if key == "petersburgBlock" and not config.has(key) else key
        # only the DAO fork may be negative, which means that the network has no DAO fork
        number = config.plain_number(name, minimum=-(2**63) if key == "daoForkBlock" else 0)
        if number is None or (key == "daoForkBlock" and (number <= 0 or config.get("daoForkSupport") is False)):
            continue
        numbers.append((name, number))
        if milestone is not None:
            blocks[milestone] = number
        elif key == "daoForkBlock":
            dao_fork_block = number
    seconds: list[tuple[str, int]] = []
    for key, milestone in TIME_FORKS:
        time = config.plain_number(key)
        if time is not None:
            seconds.append((key, time))
            times[milestone] = time
    config.get("daoForkSupport")
    _check_order(config, numbers)
    _check_order(config, seconds)
    schedule = ForkSchedule(blocks, times, _blob_schedule(config, times))
    return schedule, dao_fork_block, _distinct(numbers), _distinct(seconds)


def _check_order(config: GenesisObject, activations: list[tuple[str, int]]) -> None:
    for (earlier, before), (later, after) in pairwise(activations):
        if after < before:
            raise config.invalid(later, after, f"comes before {earlier}, which is at {before}")


def _distinct(activations: list[tuple[str, int]]) -> tuple[int, ...]:
    return tuple(sorted({value for _, value in activations if value > 0}))


def _blob_schedule(config: GenesisObject, times: dict[Milestone, int]) -> dict[Milestone, BlobParameters]:
    schedule = dict(DEFAULT_BLOB_SCHEDULE)
    entries = config.child("blobSchedule")
    for milestone in Milestone:
        if milestone < Milestone.CANCUN:
            continue
        name = milestone.name.lower()
        entry = entries.child(name) if entries is not None else None
        if entry is not None:
            schedule[milestone] = read_blob_parameters(entry)
        elif milestone > Milestone.OSAKA and milestone in times:
            raise config.missing(f"blobSchedule.{name}")
    return schedule


def read_blob_parameters(entry: GenesisObject) -> BlobParameters:
    """Read one entry of a blob schedule."""
    values = []
    for name in ("target", "max", "baseFeeUpdateFraction"):
        value = entry.number(name, bits=32, minimum=0 if name == "target" else 1)
        if value is None:
            raise entry.missing(name)
        values.append(value)
    if values[0] > values[1]:
        raise entry.invalid("target", values[0], f"above max, which is {values[1]}")
    return BlobParameters(*values)


def _bootnodes(config: GenesisObject) -> tuple[str, ...]:
    discovery = config.child("discovery")
    if discovery is None:
        return ()
    discovery.get("dns")
    values = discovery.get("bootnodes")
    if values is None:
        return ()
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise discovery.invalid("bootnodes", values, "must be a list of enode URLs")
    return tuple(values)


def _refuse_what_cannot_be(config: GenesisObject, spec: ChainSpec) -> None:
    for key in _WITHOUT_EFFECT:
        config.get(key)
    config.child("ibft")
    stack_size = config.number("evmStackSize")
    if stack_size not in (None, _STACK_SIZE):
        raise config.invalid("evmStackSize", stack_size, f"only {_STACK_SIZE} is supported")
    curve = config.text("ecCurve")
    if curve is not None and curve.lower() != "secp256k1":
        raise config.invalid("ecCurve", curve, "only secp256k1 is supported")
    if spec.zero_base_fee and spec.fixed_base_fee:
        raise config.invalid("fixedBaseFee", True, "zeroBaseFee is set too")
    if spec.engine is EngineKind.CLIQUE and spec.forks.times and spec.terminal_total_difficulty is None:
        # Clique headers have no fields for withdrawals and for later forks (consensus.md 1.3)
        first = next(key for key, milestone in TIME_FORKS if milestone in spec.forks.times)
        raise config.invalid(first, config.get(first), "Clique networks end with London")
    _check_migration(config, spec)


def _check_migration(config: GenesisObject, spec: ChainSpec) -> None:
    """Raise an error if a transition comes before the start block of a migration to QBFT."""
    qbft, first = spec.qbft, spec.migration_block
    if qbft is None or first is None:
        return
    early = next((one.block for one in qbft.transitions if one.block < first), None)
    if early is not None:
        raise config.invalid("transitions.qbft", early, f"comes before qbft.startBlock, which is {first}")


def _unfolded(value: Any) -> Any:
    """Return a JSON value whose keys have their original spelling instead of lower case."""
    if isinstance(value, LowerCaseObject):
        return {value.spelling[key]: _unfolded(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_unfolded(item) for item in value]
    return value
