"""Rules under which existing blocks were produced. A genesis file may change these rules only for later blocks.

The genesis hash does not cover most of `config`: another chain id or fork block gives the same first block. With such a
file, a database would hold blocks that cannot be executed again. So the database stores these rules
(`docs/decisions/0142-genesis-configuration-check.md`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from ophion.chainspec.consensus_parameters import BftParameters, CliqueParameters, EngineKind
from ophion.chainspec.forks import Milestone
from ophion.chainspec.spec import BLOCK_FORKS, TIME_FORKS, ChainSpec
from ophion.errors import GenesisError
from ophion.primitives.header import Header
from ophion.primitives.types import Address

_GLACIERS: Final = (Milestone.MUIR_GLACIER, Milestone.ARROW_GLACIER, Milestone.GRAY_GLACIER)
_TRANSITIONS: Final = "transitions."
_FREE_BASE_FEE: Final = "zeroBaseFee or fixedBaseFee"
"""Name of the rule about `zeroBaseFee` and `fixedBaseFee`. With either option, base fees of headers are not checked. A
genesis file may add such an option later, but not remove it.
"""

Value = int | str | bool | list[Any] | None


class GenesisRule(Struct, frozen=True):
    """A value of a genesis file, with the first block number or timestamp that the value affects; None if the value
    affects no block yet.
    """

    value: Value
    block: int | None = 1
    time: int | None = None

    def has_begun(self, head: Header) -> bool:
        """Whether a block up to `head` depends on this rule."""
        return (self.block is not None and self.block <= head.number) or (
            self.time is not None and self.time <= head.timestamp
        )


Rules = Mapping[str, GenesisRule]

_NOT_SET: Final = GenesisRule(None, None)


def block_rules(spec: ChainSpec) -> Rules:
    """Return the rules that blocks depend on, keyed by their names in a genesis file."""
    return {
        "chainId": GenesisRule(spec.chain_id),
        "consensus": GenesisRule(spec.engine.value),
        **dict(_forks(spec)),
        **_engine(spec),
    }


def encode_rules(rules: Rules) -> bytes:
    """Encode consensus rules for the database."""
    fields = {name: (rule.value, rule.block, rule.time) for name, rule in rules.items()}
    return json.dumps(fields, separators=(",", ":")).encode()


def check_rules(record: bytes, given: Rules, head: Header) -> None:
    """Raise `GenesisError` if the given rules differ from the stored rules for blocks up to `head`."""
    if head.number == 0:
        return
    stored = {name: GenesisRule(*fields) for name, fields in json.loads(record).items()}
    # compare a transition even if only the stored or only the given rules contain it; compare any other setting only if
    # both contain it, because older program versions stored fewer settings
    names = [
        name
        for name in dict.fromkeys((*given, *stored))
        if name.startswith(_TRANSITIONS) or (name in stored and name in given)
    ]
    changed = [
        f"{name} was {_shown(was)} and is {_shown(now)}"
        for name, was, now in ((name, stored.get(name, _NOT_SET), given.get(name, _NOT_SET)) for name in names)
        if was.value != now.value and (was.has_begun(head) or now.has_begun(head))
        if not (name == _FREE_BASE_FEE and now.value)
    ]
    if changed:
        raise GenesisError(
            f"Supplied genesis changes rules of blocks that are stored already (up to block {head.number}): "
            f"{'; '.join(changed)}. Use the genesis file the data was made with (--genesis-file), in which only rules"
            " of later blocks may be changed, or another data path (--data-path)."
        )


def _shown(rule: GenesisRule) -> str:
    return "not set" if rule.value is None else str(rule.value)


def _forks(spec: ChainSpec) -> Iterator[tuple[str, GenesisRule]]:
    """Yield the start of each fork. A later fork also sets the start of earlier forks that the file omits."""
    schedule = spec.forks
    has_bomb = spec.engine is EngineKind.ETHASH and (spec.ethash is None or spec.ethash.fixed_difficulty is None)
    times: dict[Milestone, int | None] = {}
    begins: int | None = None
    for _, milestone in reversed(TIME_FORKS):
        begins = schedule.times.get(milestone, begins)
        times[milestone] = begins
    block = 0 if begins == 0 else None
    blocks: dict[Milestone, int | None] = {}
    for _, later in reversed(BLOCK_FORKS):
        if later is not None:
            block = schedule.blocks.get(later, block)
            blocks[later] = block
    for key, named in BLOCK_FORKS:
        if named is not None and (has_bomb or named not in _GLACIERS):
            yield key, GenesisRule(blocks[named], blocks[named])
    yield "daoForkBlock", GenesisRule(spec.dao_fork_block, spec.dao_fork_block)
    for key, milestone in TIME_FORKS:
        yield key, GenesisRule(times[milestone], None, times[milestone])
    for milestone, blobs in schedule.blob_schedule.items():
        values = [blobs.target, blobs.max, blobs.fee_fraction]
        yield f"blobSchedule.{milestone.name.lower()}", GenesisRule(values, None, times[milestone])
    london, is_free = blocks[Milestone.LONDON], spec.zero_base_fee or spec.fixed_base_fee
    yield _FREE_BASE_FEE, GenesisRule(is_free, london, begins)
    if not is_free:
        yield "baseFeePerGas", GenesisRule(spec.initial_base_fee, london, begins)


def _engine(spec: ChainSpec) -> Rules:
    """Return the engine rules that all nodes must share. Periods, timeouts and limits are not included, because they
    may change at any time.
    """
    rules: dict[str, GenesisRule] = {}
    first = 1
    if spec.engine in (EngineKind.CLIQUE, EngineKind.IBFT2):
        if spec.engine is EngineKind.CLIQUE:
            rules.update(_epoch("clique", spec.clique or CliqueParameters(), first))
        else:
            rules.update(_bft(spec, "ibft2", spec.ibft2 or BftParameters(), first))
        first = spec.migration_block or 0
        rules["qbft.startblock"] = GenesisRule(first or None, first or None)
    if spec.qbft is not None and first:
        rules.update(_bft(spec, "qbft", spec.qbft, first))
    return rules


def _epoch(name: str, parameters: BftParameters | CliqueParameters, first: int) -> Rules:
    length = parameters.epoch_length
    return {f"{name}.epochlength": GenesisRule(length, first - 1 + length)}


def _bft(spec: ChainSpec, name: str, parameters: BftParameters, first: int) -> Rules:
    rules = {
        **_epoch(name, parameters, first),
        f"{name}.blockreward": GenesisRule(parameters.block_reward, first),
        f"{name}.miningbeneficiary": GenesisRule(_text(parameters.mining_beneficiary), first),
        f"{name}.validatorcontractaddress": GenesisRule(_text(parameters.validator_contract), first),
    }
    for transition in parameters.transitions:
        at, members, selection = transition.block, transition.validators, transition.validator_selection
        begins = (None, at) if spec.forks.counts_time(at) else (at, None)
        values: dict[str, Value] = {
            "validators": None if members is None else [_text(member) for member in members],
            "validatorselectionmode": None if selection is None else selection.value,
            "validatorcontractaddress": _text(transition.validator_contract),
            "blockreward": transition.block_reward,
            # an empty beneficiary in a transition clears the beneficiary of earlier transitions
            "miningbeneficiary": (_text(transition.mining_beneficiary) or "")
            if transition.sets_mining_beneficiary
            else None,
        }
        for member, value in values.items():
            if value is not None:
                rules[f"{_TRANSITIONS}{name}.{at}.{member}"] = GenesisRule(value, *begins)
    return rules


def _text(address: Address | None) -> str | None:
    return None if address is None else f"0x{address.hex()}"
