"""Enables the QBFT engine to read the validator contract (consensus.md 3.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ophion.chain.block_environment import block_env
from ophion.chain.chain import Chain
from ophion.errors import DecodeError, InvalidHeader
from ophion.native.exceptions import translated
from ophion.native.executor import CallRequest, State, call
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import ZERO_ADDRESS, Address

_GAS: Final = 50_000_000
_DEADLINE_S: Final = 5.0
_RULE: Final = "validators of the contract"


def read_contracts(chain: Chain, state_after: Callable[[HashedHeader], State]) -> None:
    """Give the engine a function that calls the validator contract. `state_after` also finds states of blocks that are
    being imported.
    """
    if chain.spec.qbft is None:
        return
    # lazy import: networks without BFT start faster
    from ophion.consensus.bft.engine import BftEngine
    from ophion.consensus.bft.validator_provider import GET_VALIDATORS, decode_addresses
    from ophion.consensus.clique_to_qbft import MigrationEngine

    engine = chain.engine.bft if isinstance(chain.engine, MigrationEngine) else chain.engine
    if not isinstance(engine, BftEngine):
        return

    def ask(header: HashedHeader, contract: Address) -> Sequence[Address]:
        env = block_env(chain.spec, chain.rules, header.header, header.header.coinbase)
        request = CallRequest(sender=ZERO_ADDRESS, to=contract, gas=_GAS, input=GET_VALIDATORS)
        with translated():
            outcome = call(state_after(header), env, request, (), _DEADLINE_S)
        if outcome.kind != "returned":
            # a timeout is transient, because it depends on this machine and not on the block
            text = f"0x{contract.hex()} did not answer: {outcome.kind} {outcome.reason}"
            raise InvalidHeader(_RULE, text, transient=outcome.kind == "timeout")
        try:
            return decode_addresses(outcome.output)
        except DecodeError as error:
            raise InvalidHeader(_RULE, f"0x{contract.hex()}: {error}") from error

    engine.validators.contract_reader = ask
