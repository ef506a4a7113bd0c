"""eth_simulateV1 (json-rpc.md 7.1)."""

from __future__ import annotations

from typing import Annotated, Final

from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import BlockParam, WireType, spliced_result
from ophion.rpc.services.block_reference import view_at
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.simulation import Simulation, Simulator, decode_simulation

_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "blockStateCalls": {"type": "array", "items": {"type": "object"}},
        "traceTransfers": {"type": "boolean"},
        "validation": {"type": "boolean"},
        "returnFullTransactions": {"type": "boolean"},
    },
    "required": ["blockStateCalls"],
}
SimulationParam = Annotated[
    Simulation, WireType("simulation", "blocks of calls with overrides", _SCHEMA, decode_simulation)
]
SimulatedBlocks = Annotated[
    bytes,
    spliced_result(
        "simulated blocks",
        "block objects with the results of their calls",
        {"type": "array", "items": {"type": "object"}},
    ),
]


@method("eth_simulateV1", needs={"state"})
async def simulate(
    ctx: RpcContext, simulation: SimulationParam, block: BlockParam = BlockTag.LATEST
) -> SimulatedBlocks:
    """Executes blocks of calls on top of a block, each on the state after the previous block. Stores nothing."""
    view = await ctx.queries.pending() if block is BlockTag.PENDING else view_at(ctx, block)
    if view is None:
        raise BLOCK_NOT_FOUND()
    return await ctx.lanes.trace.run(Simulator(ctx, view, simulation).run)
