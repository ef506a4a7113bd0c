"""Private transactions for tests: public test keys, a contract that stores a number, and a client."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final

from ophion.enclave.group_ids import legacy_id
from ophion.native.crypto import PrivateKey
from ophion.native.privacy import sign_private_transaction
from ophion.testing.node_process import NodeProcess
from ophion.testing.wait_for import wait_for

ENCLAVE_SECRETS: Final = tuple(
    b64decode(text)
    for text in (
        "hBsuQsGJzx4QHmFmBkNoI7YGnTmaZP4P+wBOdu56ljk=",
        "wjeHURxQJUqZvhjMv+lxoRlXYnX/mpm0Iu/ldBr32Qs=",
        "QmBfzDOxF99iInkXAPBAZpQQfelvPmHqbcO8tNHYtJM=",
    )
)
"""Public test keys."""
ENCLAVE_KEYS: Final = tuple(
    b64decode(text)
    for text in (
        "A1aVtMxLCUHmBVHXoZzzBgPbW/wj5axDpW9X8l91SGo=",
        "Ko2bVqD+nNlNYL5EE7y3IdOnviftjiizpjRt+HTuFBs=",
        "k2zXEin4Ip/qBGlRkJejnGWdP9cjkK+DAvKNW31L2C8=",
    )
)
NUMBER_CONTRACT: Final = bytes.fromhex(
    "608060405234801561001057600080fd5b5060d08061001f6000396000f3fe60806040526004361060485763ffffffff7c0100000000000000"
    "00000000000000000000000000000000000000000060003504166360fe47b18114604d5780636d4ce63c146075575b600080fd5b3480156058"
    "57600080fd5b50607360048036036020811015606d57600080fd5b50356099565b005b348015608057600080fd5b506087609e565b60408051"
    "918252519081900360200190f35b600055565b6000549056fea165627a7a72305820cb1d0935d14b589300b12fcd0ab849a7e9019c81da24d6"
    "daa4f6b2f003d1b0180029"
)
"""A contract that stores one number: `set(uint256)` and `get()`."""
GET: Final = "0x6d4ce63c"
GAS: Final = 3_000_000


def set_number(value: int) -> bytes:
    """Encode the call that stores a number."""
    return bytes.fromhex("60fe47b1") + value.to_bytes(32, "big")


def text(key: bytes) -> str:
    """Encode a key or group id as base64."""
    return b64encode(key).decode()


class PrivateClient:
    """A client that sends private transactions to a real node."""

    def __init__(self, node: NodeProcess, key: PrivateKey, chain_id: int) -> None:
        self.node = node
        self.key = key
        self.chain_id = chain_id
        self.enclave_key = b64decode(node.rpc("priv_status")["keys"][0])

    def send(
        self,
        data: bytes,
        *,
        to: str | None = None,
        private_for: tuple[bytes, ...] = (),
        group: bytes | None = None,
        nonce: int | None = None,
    ) -> str:
        """Send a private transaction; return the hash of its marker."""
        id = group or legacy_id([self.enclave_key, *private_for])
        if nonce is None:
            nonce = int(self.node.rpc("priv_getTransactionCount", "0x" + self.key.address.hex(), text(id)), 16)
        raw = sign_private_transaction(
            self.key.secret(),
            nonce=nonce,
            gas_price=0,
            gas_limit=GAS,
            to=None if to is None else bytes.fromhex(to[2:]),
            data=data,
            private_from=self.enclave_key,
            private_for=None if group is not None else private_for,
            privacy_group_id=group,
            chain_id=self.chain_id,
        )
        marker: str = self.node.rpc("eea_sendRawTransaction", "0x" + raw.hex())
        return marker

    def receipt(self, marker: str, limit_s: float = 60.0) -> dict[str, Any]:
        """Wait until the marker is in a block; return the private receipt."""
        wait_for(lambda: self.node.rpc("eth_getTransactionReceipt", marker) is not None, limit_s, "the marker's block")
        # repeat the request, because private execution on a busy machine may take longer than the node waits
        return wait_for(lambda: self._private_receipt(marker), limit_s, "its receipt")

    def _private_receipt(self, marker: str) -> dict[str, Any]:
        found: dict[str, Any] = self.node.rpc("eea_getTransactionReceipt", marker)
        return found


def add_members(*keys: bytes) -> bytes:
    """Encode addParticipants(bytes[]) for the proxy of a flexible group."""
    sizes = [(len(key) + 31) // 32 * 32 for key in keys]
    starts = [32 * len(keys) + sum(32 + size for size in sizes[:index]) for index in range(len(keys))]
    bodies = [len(key).to_bytes(32, "big") + key.ljust(size, b"\0") for key, size in zip(keys, sizes, strict=True)]
    words = [32, len(keys), *starts]
    return bytes.fromhex("965a25ef") + b"".join(word.to_bytes(32, "big") for word in words) + b"".join(bodies)


def remove_member(key: bytes) -> bytes:
    """Encode the call removeParticipant(bytes) for the proxy of a flexible group."""
    return bytes.fromhex("1f52a8ee") + b"".join(word.to_bytes(32, "big") for word in (32, len(key))) + key
