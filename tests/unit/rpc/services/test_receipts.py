"""Tests receipts of transactions just sent (EIP-7966)."""

from __future__ import annotations

import asyncio

import pytest

from ophion.errors import RpcError
from ophion.primitives.types import Hash32
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.receipt_waits import ReceiptWaits
from ophion.rpc.services.receipts import NONCE_GAP_CODE, TIMEOUT_CODE, receipt_of
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

B = DEV_KEYS[1]


def test_a_receipt_comes_with_the_block(dev: Interface) -> None:
    async def story() -> bytes:
        (hash,) = await dev.node.send(legacy_transaction(B, 0))
        waiting = asyncio.create_task(receipt_of(dev.context, hash, 20_000))
        await asyncio.sleep(0)
        assert not waiting.done()
        await dev.node.seal()
        return await waiting

    assert b'"status":"0x1"' in dev.run(story())


@pytest.mark.parametrize("timeout_ms", [1, 2])
def test_the_time_that_was_asked_for_ends(dev: Interface, timeout_ms: int) -> None:
    async def story() -> None:
        (hash,) = await dev.node.send(legacy_transaction(B, 0))
        with pytest.raises(RpcError, match="was not in a block after 0.00") as caught:
            await receipt_of(dev.context, hash, timeout_ms)
        assert (caught.value.code, caught.value.data) == (TIMEOUT_CODE, "0x" + hash.hex())

    dev.run(story())


def test_a_missing_nonce_is_named_at_once(dev: Interface) -> None:
    async def story() -> None:
        (hash,) = await dev.node.send(legacy_transaction(B, 2))
        with pytest.raises(RpcError, match="an earlier one with nonce 0") as caught:
            await receipt_of(dev.context, hash, None)
        assert (caught.value.code, caught.value.data) == (NONCE_GAP_CODE, "0x0")
        await dev.node.send(legacy_transaction(B, 0))
        with pytest.raises(RpcError) as caught:
            await receipt_of(dev.context, hash, None)
        assert caught.value.data == "0x1"

    dev.run(story())


def test_the_preset_of_anvil_waits_longer_and_across_a_nonce_gap(
    dev: Interface, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    wait = dev.context.receipt_waits.wait

    async def noted(hash: Hash32, timeout_s: float) -> None:
        waited.append(timeout_s)
        await wait(hash, 0.001)

    monkeypatch.setattr(RpcContext, "is_anvil", True)
    monkeypatch.setattr(ReceiptWaits, "wait", lambda self, hash, timeout_s: noted(hash, timeout_s))

    async def story() -> None:
        (hash,) = await dev.node.send(legacy_transaction(B, 2))
        with pytest.raises(RpcError, match="Transaction confirmation timeout") as caught:
            await receipt_of(dev.context, hash, None)
        assert (caught.value.code, caught.value.data) == (-32603, "0x" + hash.hex())

    dev.run(story())
    assert waited == [27.0]
