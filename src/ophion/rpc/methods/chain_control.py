"""debug_setHead, debug_replayBlock, debug_resyncWorldState, plugins_reloadPluginConfig: chain control of Besu and
geth.
"""

from __future__ import annotations

from ophion.chain.ancestor_hashes import ancestor_hashes
from ophion.chain.block import ommers_of
from ophion.chain.block_environment import block_env
from ophion.errors import RpcError
from ophion.native.executor import execute
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import METHOD_NOT_ENABLED, SERVER_ERROR_CODE, UNKNOWN_BLOCK
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.wire_types import BlockNumberParam, BlockParam, BooleanParam, Text, TextParam
from ophion.rpc.services.block_reference import header_at
from ophion.rpc.services.context import RpcContext

_SUCCESS = "Success"
_PLUGIN_NOT_FOUND_CODE = -60000


@method("debug_setHead")
async def set_head(ctx: RpcContext, block: BlockParam, move_state: BooleanParam = True) -> Text:
    """Makes an earlier block the head of a development network. Other networks refuse this method.

    The state is reset to the state of that block.
    """
    header = header_at(ctx, BlockTag.LATEST if block is BlockTag.PENDING else block)
    if header is None or not ctx.queries.is_canonical(header):
        raise UNKNOWN_BLOCK()
    if ctx.dev is None:
        raise METHOD_NOT_ENABLED(
            "blocks of a network with other nodes are not removed. To go back, stop the node, export the blocks to keep"
            " with `ophion blocks export --end-block=N` and import them into a new data path."
        )
    await ctx.dev.rollback(ctx.queries.head_number - header.number)
    return _SUCCESS


@method("debug_replayBlock", needs={"state"})
async def replay_block(ctx: RpcContext, block: BlockNumberParam) -> Text:
    """Executes a block again and compares the outcome with its header. The head does not move."""
    header = None if block is BlockTag.PENDING else header_at(ctx, block)
    if header is None or header.number == 0:
        raise UNKNOWN_BLOCK()
    await ctx.lanes.trace.run(lambda: _replay(ctx, header))
    return _SUCCESS


def _replay(ctx: RpcContext, header: HashedHeader) -> None:
    chain = ctx.queries.chain
    parent, body = chain.header(header.parent_hash), chain.store.body(header.hash)
    if parent is None or body is None:
        raise UNKNOWN_BLOCK()
    hashes = None if chain.is_canonical(parent) else ancestor_hashes(chain.store, chain.header, parent)
    env = block_env(chain.spec, chain.rules, header.header, chain.engine.beneficiary(header), hashes)
    rewards = chain.engine.rewards(header, ommers_of(body))
    outcome = execute(chain.state(parent.header), env, body, rewards, False, ctx.limits.timeout_s)
    expected = header.header
    found = (outcome.state_root, outcome.receipts_root, outcome.gas_used)
    if found != (expected.state_root, expected.receipts_root, expected.gas_used):
        raise RpcError(
            SERVER_ERROR_CODE,
            f"block {header.number} has another outcome: state root 0x{outcome.state_root.hex()}, receipts root"
            f" 0x{outcome.receipts_root.hex()}, gas used {outcome.gas_used}",
        )


@method("debug_resyncWorldState", aliases=["debug_resyncWorldstate"])
def resync_state(ctx: RpcContext) -> Text:
    """Always fails, because this node computes the state itself and never downloads it from peers."""
    raise METHOD_NOT_ENABLED(
        "the state is computed from blocks. To check it use `ophion storage check`; to compute it again, export the"
        " blocks and import them into a new data path."
    )


@method("plugins_reloadPluginConfig", examples=[Example([], _SUCCESS)])
def reload_plugins(ctx: RpcContext, plugin: TextParam | None = None) -> Text:
    """Returns `Success`, because there are no plugins; a plugin name is an error."""
    if plugin is not None:
        raise RpcError(_PLUGIN_NOT_FOUND_CODE, "Plugin not found", "Ophion loads no plugins")
    return _SUCCESS
