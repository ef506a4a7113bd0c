"""Turns the network names of the public block tests into chain specifications.

A name is a fork that is active from genesis (`Berlin`), or two forks and the point where the second fork begins:
`BerlinToLondonAt5` (block), `ParisToShanghaiAtTime15k` (second), `ArrowGlacierToParisAtDiffC0000` (total difficulty).
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import EngineKind, EthashParameters
from ophion.chainspec.forks import BlobParameters, ForkSchedule, Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.primitives.hexcodec import parse_number

_FORKS: Final = {
    "Frontier": Milestone.FRONTIER,
    "Homestead": Milestone.HOMESTEAD,
    "EIP150": Milestone.TANGERINE,
    "TangerineWhistle": Milestone.TANGERINE,
    "EIP158": Milestone.SPURIOUS,
    "SpuriousDragon": Milestone.SPURIOUS,
    "Byzantium": Milestone.BYZANTIUM,
    "Constantinople": Milestone.CONSTANTINOPLE,
    "ConstantinopleFix": Milestone.PETERSBURG,
    "Petersburg": Milestone.PETERSBURG,
    "Istanbul": Milestone.ISTANBUL,
    "MuirGlacier": Milestone.MUIR_GLACIER,
    "EIP2384": Milestone.MUIR_GLACIER,
    "Berlin": Milestone.BERLIN,
    "London": Milestone.LONDON,
    "ArrowGlacier": Milestone.ARROW_GLACIER,
    "GrayGlacier": Milestone.GRAY_GLACIER,
    "Merge": Milestone.PARIS,
    "Paris": Milestone.PARIS,
    "Shanghai": Milestone.SHANGHAI,
    "Cancun": Milestone.CANCUN,
    "Prague": Milestone.PRAGUE,
    "Osaka": Milestone.OSAKA,
    "BPO1": Milestone.BPO1,
    "BPO2": Milestone.BPO2,
    "BPO3": Milestone.BPO3,
    "BPO4": Milestone.BPO4,
    "BPO5": Milestone.BPO5,
}
_TRANSITION: Final = re.compile(
    r"(?P<before>\w+?)To(?P<after>\w+)At(?P<kind>Time|Diff)?(?P<point>[0-9A-Fa-f]+)(?P<k>k?)"
)
_DAO: Final = "Dao"
# the public test vectors use these blob parameters, but only vectors of Prague and later forks state them
_BPO_DEFAULTS: Final = {
    Milestone.BPO1: BlobParameters(10, 15, 8_346_193),
    Milestone.BPO2: BlobParameters(14, 21, 11_684_671),
    Milestone.BPO3: BlobParameters(21, 32, 20_609_697),
    Milestone.BPO4: BlobParameters(14, 21, 13_739_630),
    Milestone.BPO5: BlobParameters(14, 21, 13_739_630),
}


def milestone_named(name: str) -> Milestone | None:
    """Return the milestone for a fork name of the tests; None if the name is unknown."""
    return _FORKS.get(name)


def network_spec(name: str, config: dict[str, Any]) -> ChainSpec | None:
    """Return the chain specification of a network name; None if a fork is unknown.

    `config` is the value of the JSON key `config` in newer vectors, with chain id and blob schedule.
    """
    spec = _named_spec(name)
    if spec is None:
        return None
    chain_id = parse_number(str(config.get("chainid", config.get("chainId", "1"))))
    schedule = dict(spec.forks.blob_schedule) | _BPO_DEFAULTS
    for fork, entry in config.get("blobSchedule", {}).items():
        milestone = _FORKS.get(fork)
        if milestone is not None:
            values = (entry["target"], entry["max"], entry["baseFeeUpdateFraction"])
            schedule[milestone] = BlobParameters(*(parse_number(str(value)) for value in values))
    return replace(spec, chain_id=chain_id, forks=replace(spec.forks, blob_schedule=schedule))


def _named_spec(name: str) -> ChainSpec | None:
    milestone = _FORKS.get(name)
    if milestone is not None:
        return _spec(*_from_genesis(milestone))
    match = _TRANSITION.fullmatch(name)
    if match is None or match["before"] not in _FORKS:
        return None
    before = _FORKS[match["before"]]
    point = int(match["point"], 16 if match["kind"] == "Diff" else 10) * (1000 if match["k"] else 1)
    blocks, times, terminal = _from_genesis(before)
    if match["after"] == _DAO:
        return replace(_spec(blocks, times, terminal), dao_fork_block=point)
    after = _FORKS.get(match["after"])
    if after is None:
        return None
    if match["kind"] == "Diff":
        return _spec(blocks, times, point)
    if match["kind"] == "Time":
        return _spec(blocks, times | {after: point}, terminal)
    return _spec(blocks | {after: point}, times, terminal)


def _from_genesis(milestone: Milestone) -> tuple[dict[Milestone, int], dict[Milestone, int], int | None]:
    """Return (block forks, time forks, terminal total difficulty) of a network with this fork from genesis on."""
    if milestone < Milestone.PARIS:
        return {milestone: 0}, {}, None
    return {Milestone.GRAY_GLACIER: 0}, {milestone: 0} if milestone > Milestone.PARIS else {}, 0


def _spec(blocks: dict[Milestone, int], times: dict[Milestone, int], terminal: int | None) -> ChainSpec:
    return ChainSpec(
        chain_id=1,
        engine=EngineKind.ETHASH,
        forks=ForkSchedule(blocks, times),
        ethash=EthashParameters(),
        terminal_total_difficulty=terminal,
    )
