"""A running old node as the source, over JSON-RPC.

debug_getRawBlock returns RLP. If the node refuses this method, the reply of eth_getBlockByNumber is encoded as RLP and
the hash is checked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from ophion.chain.block import peek_header
from ophion.consensus.engine import Engine
from ophion.errors import CommandError, OphionError
from ophion.migration.block_source import SourceHead, missing_block
from ophion.migration.rpc_block import encode_json_block
from ophion.primitives.types import Hash32
from ophion.runtime.blocking_json_rpc import Failure, JsonRpcClient

_BATCH_BLOCKS: Final = 32
_BATCHES_AHEAD: Final = 3
_NAMES: Final = {"besu": "Besu", "pantheon": "Pantheon", "geth": "geth", "goquorum": "GoQuorum", "ophion": "Ophion"}


class RpcSource:
    """Blocks of a running node."""

    def __init__(self, client: JsonRpcClient, engine: Engine) -> None:
        self._rpc = client
        self._engine = engine
        name = str(client.call("web3_clientVersion")).partition("/")[0]
        self.client = _NAMES.get(name.lower(), "the node")
        raw = client.batch([("debug_getRawBlock", ["0x0"])])[0]
        self.has_raw_blocks = isinstance(raw, str)
        """Whether the node offers debug_getRawBlock."""

    def head(self) -> SourceHead:
        """Return the node's latest block."""
        block = self._rpc.call("eth_getBlockByNumber", "latest", False)
        if not isinstance(block, dict):
            raise CommandError(f"The node at {self._rpc.address} has no latest block.")
        try:
            return SourceHead(int(block["number"], 16), self._hash(block))
        except (LookupError, TypeError, ValueError):
            raise CommandError(f"The latest block of {self._rpc.address} has no number.") from None

    def hash_at(self, number: int) -> Hash32 | None:
        """Return the hash of the canonical block with this number."""
        block = self._rpc.call("eth_getBlockByNumber", hex(number), False)
        return self._hash(block) if isinstance(block, dict) else None

    def blocks(self, first: int, last: int) -> Iterator[bytes]:
        """Yield the RLP of the canonical blocks. Some batches are fetched ahead."""
        fetch = self._raw_blocks if self.has_raw_blocks else self._json_blocks
        starts = iter(range(first, last + 1, _BATCH_BLOCKS))
        pending: deque[Future[list[bytes]]] = deque()
        with ThreadPoolExecutor(_BATCHES_AHEAD, thread_name_prefix="fetch") as executor:
            try:
                while True:
                    while len(pending) < _BATCHES_AHEAD and (start := next(starts, None)) is not None:
                        numbers = range(start, min(start + _BATCH_BLOCKS, last + 1))
                        pending.append(executor.submit(fetch, numbers))
                    if not pending:
                        return
                    yield from pending.popleft().result()
            finally:
                executor.shutdown(wait=True, cancel_futures=True)

    def close(self) -> None:
        """Close the connections."""
        self._rpc.close()

    def _raw_blocks(self, numbers: range) -> list[bytes]:
        found = self._rpc.batch([("debug_getRawBlock", [hex(number)]) for number in numbers])
        return [
            self._decoded(number, self._checked(number, raw, str)) for number, raw in zip(numbers, found, strict=True)
        ]

    def _decoded(self, number: int, raw: str) -> bytes:
        try:
            return bytes.fromhex(raw.removeprefix("0x"))
        except ValueError:
            raise CommandError(f"Block {number} of {self._rpc.address} is not hexadecimal.") from None

    def _hash(self, block: dict[str, Any]) -> Hash32:
        found = block.get("hash")
        try:
            return bytes.fromhex(found.removeprefix("0x"))  # type: ignore[union-attr]
        except (AttributeError, ValueError):
            raise CommandError(f"A block of {self._rpc.address} has no hash.") from None

    def _json_blocks(self, numbers: range) -> list[bytes]:
        found = self._rpc.batch([("eth_getBlockByNumber", [hex(number), True]) for number in numbers])
        return [self._encoded(self._checked(number, block, dict)) for number, block in zip(numbers, found, strict=True)]

    def _encoded(self, block: dict[str, Any]) -> bytes:
        listed = block.get("uncles")
        count = len(listed) if isinstance(listed, list) else 0
        uncles: list[Any] = []
        if count:
            calls = [("eth_getUncleByBlockNumberAndIndex", [block["number"], hex(index)]) for index in range(count)]
            uncles = self._rpc.batch(calls)
        try:
            raw = encode_json_block(block, uncles)
            found = peek_header(raw, self._engine).hash
        except (OphionError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise CommandError(
                f"Block {block.get('number')} of {self._rpc.address} cannot be encoded: {str(error)!a}"
            ) from error
        if f"0x{found.hex()}" != block.get("hash"):
            raise CommandError(
                f"Block {block.get('number')} of {self._rpc.address} has another hash when it is encoded:"
                f" 0x{found.hex()}."
                " Enable the API DEBUG at the old node, so that debug_getRawBlock returns the block as it is."
            )
        return raw

    def _checked(self, number: int, found: Any, kind: type) -> Any:
        if isinstance(found, Failure):
            raise CommandError(
                f"The node at {self._rpc.address} refuses block {number}: {found.message!a} ({found.code})."
            )
        if not isinstance(found, kind):
            raise missing_block(self.client, number, "block")
        return found
