"""Accounts, code, storage and the next header of development nodes (anvil_set*, hardhat_set*, tenderly_set*)."""

from __future__ import annotations

from ophion.errors import RpcError
from ophion.native.executor import AccountOverride
from ophion.rpc.errors import SERVER_ERROR_CODE, invalid_params
from ophion.rpc.schema.wire_types import AddressParam, Boolean, DataParam
from ophion.rpc.services.cheat_code_params import (
    AnyParam,
    Json,
    Nothing,
    NumberParam,
    WordParam,
    cheat_code,
    decode_number,
    dev_of,
)
from ophion.rpc.services.context import RpcContext

_MAX_NONCE = 2**64 - 2
_MAX_BALANCE = 2**256 - 1


@cheat_code("anvil_setBalance", "hardhat_setBalance", "tenderly_setBalance")
async def set_balance(ctx: RpcContext, address: AnyParam, balance: NumberParam) -> Nothing:
    """Sets the balance of an account, or of a list of accounts."""
    from ophion.rpc.schema.wire_types import decode_address

    addresses = address if isinstance(address, list) else [address]
    await dev_of(ctx).edit(*(AccountOverride(address=decode_address(one), balance=balance) for one in addresses))


@cheat_code("anvil_addBalance", "hardhat_addBalance", "tenderly_addBalance")
async def add_balance(ctx: RpcContext, address: AddressParam, amount: NumberParam) -> Nothing:
    """Adds to the balance of an account."""

    def changes() -> list[AccountOverride]:
        total = ctx.queries.head_state.balance(address) + amount
        return [AccountOverride(address=address, balance=min(total, _MAX_BALANCE))]

    await dev_of(ctx).change(changes)


@cheat_code("anvil_setCode", "hardhat_setCode")
async def set_code(ctx: RpcContext, address: AddressParam, code: DataParam) -> Nothing:
    """Sets the code of an account; its storage stays."""
    await dev_of(ctx).edit(AccountOverride(address=address, code=code))


@cheat_code("anvil_setNonce", "hardhat_setNonce", "evm_setAccountNonce")
async def set_nonce(ctx: RpcContext, address: AddressParam, nonce: NumberParam) -> Nothing:
    """Sets the nonce of an account. With the preset `hardhat`, the nonce must not go back."""
    if nonce > _MAX_NONCE:
        raise invalid_params("nonce: not within 64 bits")
    dev = dev_of(ctx)
    existing = dev.queries.head_state.nonce(address)
    if ctx.is_hardhat and nonce < existing:
        raise RpcError(
            SERVER_ERROR_CODE, f"New nonce ({nonce}) must not be smaller than the existing nonce ({existing})"
        )
    await dev.edit(AccountOverride(address=address, nonce=nonce))


@cheat_code("anvil_setStorageAt", "hardhat_setStorageAt")
async def set_storage(ctx: RpcContext, address: AddressParam, slot: WordParam, value: WordParam) -> Boolean:
    """Sets a storage slot of an account."""
    await dev_of(ctx).edit(AccountOverride(address=address, state_diff=[(slot, value)]))
    return True


@cheat_code("anvil_dealERC20", "anvil_setERC20Balance", "hardhat_dealERC20", "tenderly_setErc20Balance")
async def deal_erc20(ctx: RpcContext, account: AddressParam, token: AddressParam, amount: NumberParam) -> Nothing:
    """Sets the token balance of an account, in the slot that `balanceOf` reads."""
    from ophion.dev.erc20 import SlotNotFound, balance_change

    dev = dev_of(ctx)
    try:
        changes = await ctx.lanes.read.run(lambda: balance_change(dev, token, account, amount))
    except SlotNotFound as error:
        raise RpcError(SERVER_ERROR_CODE, error.message) from None
    await dev.edit(*changes)


@cheat_code("anvil_setERC20Allowance")
async def set_erc20_allowance(
    ctx: RpcContext, owner: AddressParam, spender: AddressParam, token: AddressParam, amount: NumberParam
) -> Nothing:
    """Sets the token allowance of a spender, in the slot that `allowance` reads."""
    from ophion.dev.erc20 import SlotNotFound, allowance_change

    dev = dev_of(ctx)
    try:
        changes = await ctx.lanes.read.run(lambda: allowance_change(dev, token, owner, spender, amount))
    except SlotNotFound as error:
        raise RpcError(SERVER_ERROR_CODE, error.message) from None
    await dev.edit(*changes)


# --- the next block ------------------------------------------------------------------------------


@cheat_code("anvil_setChainId")
async def set_chain_id(ctx: RpcContext, chain_id: NumberParam) -> Nothing:
    """Changes the chain id from the next transaction on."""
    if not 0 < chain_id < 2**63:
        raise invalid_params("chain id: not within 63 bits")
    await dev_of(ctx).set_chain_id(chain_id)


@cheat_code("anvil_setCoinbase", "hardhat_setCoinbase")
def set_coinbase(ctx: RpcContext, address: AddressParam) -> Nothing:
    """Sets the account that receives the rewards, from the next block on."""
    dev_of(ctx).set_coinbase(address)


@cheat_code("anvil_setNextBlockBaseFeePerGas", "hardhat_setNextBlockBaseFeePerGas")
def set_next_base_fee(ctx: RpcContext, fee: NumberParam) -> Nothing:
    """Sets the base fee of the next block. Later base fees are computed from this base fee."""
    if fee >= 2**64:
        raise invalid_params("base fee: not within 64 bits")
    dev = dev_of(ctx)
    dev.engine.next.base_fee = fee
    dev.announce()


@cheat_code("anvil_setPrevRandao", "hardhat_setPrevRandao")
def set_prev_randao(ctx: RpcContext, value: WordParam) -> Boolean:
    """Sets the PREVRANDAO value of the next block."""
    dev = dev_of(ctx)
    dev.engine.next.prev_randao = value
    dev.announce()
    return True


@cheat_code("evm_setBlockGasLimit", "anvil_setBlockGasLimit")
def set_block_gas_limit(ctx: RpcContext, gas_limit: NumberParam) -> Boolean:
    """Sets the gas limit of all further blocks."""
    if not 0 < gas_limit < 2**63:
        raise invalid_params("gas limit: a value above 0 and within 63 bits is expected")
    dev = dev_of(ctx)
    dev.engine.next.gas_limit = gas_limit
    dev.announce()
    return True


@cheat_code("anvil_setMinGasPrice", "hardhat_setMinGasPrice")
def set_min_gas_price(ctx: RpcContext, price: AnyParam) -> Json:
    """Sets the minimum gas price. From London on, returns an error like Anvil."""
    decode_number(price)
    if ctx.queries.next_base_fee() is not None:
        raise RpcError(-32602, "anvil_setMinGasPrice is not supported when EIP-1559 is active")
    ctx.mining.floor.min_gas_price = decode_number(price)
    return None
