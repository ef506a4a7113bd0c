"""JSON-RPC client of the commands, and its options."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from ophion.cli.input_output import read_input
from ophion.cli.untrusted_text import escape_untrusted
from ophion.cli.url_option import read_url
from ophion.errors import CommandError
from ophion.native.crypto import PrivateKey
from ophion.primitives.hexcodec import data as hex_text
from ophion.primitives.types import Address
from ophion.runtime.blocking_json_rpc import Failure, JsonRpcClient
from ophion.runtime.options import Options, option
from ophion.wallet.unsigned_transaction import LEGACY, UnsignedTransaction

_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.2
_UNKNOWN_METHOD_CODES: Final = (-32601, -32604)
"""JSON-RPC error codes for a method that a node does not know or does not offer."""


class UnknownMethod(CommandError):
    """Raised when a node does not offer a method."""


class RpcNode:
    """A JSON-RPC client of one node over HTTP. The URL must come from `read_url`."""

    def __init__(self, url: str, token: str | None = None, timeout_s: float = _TIMEOUT_S) -> None:
        self._rpc = JsonRpcClient(url, token, timeout_s=timeout_s)

    def ask(self, method: str, *params: Any) -> Any:
        """Call a method and return the result. Raises `CommandError` for errors of the node or the connection."""
        (found,) = self._rpc.batch([(method, params)])
        if isinstance(found, Failure):
            why = found.data
            more = f" ({escape_untrusted(why)})" if isinstance(why, str) and not why.startswith("0x") else ""
            kind = UnknownMethod if found.code in _UNKNOWN_METHOD_CODES else CommandError
            raise kind(f"{method}: {escape_untrusted(found.message)}{more}")
        return found

    def reading(self, subject: str) -> AbstractContextManager[None]:
        """Return a context manager. In its block, a reply with an unexpected structure raises an error that names the
        node.
        """
        return self._rpc.reading(subject)

    def call(self, to: Address, data: bytes) -> bytes:
        """Call a contract at the head."""
        answer = self.ask("eth_call", {"to": hex_text(to), "data": hex_text(data)}, "latest")
        with self.reading("eth_call"):
            return bytes.fromhex(answer[2:])

    def send(self, key: PrivateKey, to: Address, data: bytes, limit_s: float) -> int:
        """Send a transaction, wait for its block and return the block number."""
        with self.reading("a transaction"):
            return self._send(key, to, data, limit_s)

    def _send(self, key: PrivateKey, to: Address, data: bytes, limit_s: float) -> int:
        sender = hex_text(key.address)
        call = {"from": sender, "to": hex_text(to), "data": hex_text(data)}
        gas = int(self.ask("eth_estimateGas", call), 16) * 5 // 4
        nonce = int(self.ask("eth_getTransactionCount", sender, "pending"), 16)
        price, chain_id = int(self.ask("eth_gasPrice"), 16), int(self.ask("eth_chainId"), 16)
        transaction = UnsignedTransaction(
            type=LEGACY, chain_id=chain_id, nonce=nonce, gas=gas, to=to, input=data, gas_price=price
        )
        tx_hash = self.ask("eth_sendRawTransaction", hex_text(transaction.signed_by(key)))
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            receipt = self.ask("eth_getTransactionReceipt", tx_hash)
            if receipt is not None:
                number = int(receipt["blockNumber"], 16)
                if receipt.get("status") != "0x1":
                    raise CommandError(f"Transaction {tx_hash} failed in block {number}: nothing was changed.")
                return number
            time.sleep(_POLL_S)
        raise CommandError(f"Transaction {tx_hash} is not in a block after {limit_s:.0f} s; it may still be mined.")


class NodeOptions(Options):
    """Options: URL and token of the node that a command calls over JSON-RPC."""

    rpc: str = option(
        "--rpc",
        default="http://127.0.0.1:8545",
        metavar="URL",
        parse=read_url("http", "https"),
        help="JSON-RPC URL of the node.",
    )
    token_file: Path | None = option("--token-file", default=None, help="File with a token for that node.")

    def node(self) -> RpcNode:
        """Return a client of the node."""
        return RpcNode(self.rpc, read_token(self.token_file))


def read_token(file: Path | None) -> str | None:
    """Read a token from a file; None without a file. Content that is not a token is neither sent nor shown, because it
    may be a secret.
    """
    if file is None:
        return None
    token = read_input(file, "Unable to read the token.").strip()
    if not token.isascii() or len(token.split()) != 1:
        raise CommandError(
            f"{file} holds no token: expected one line of letters, digits, dots, dashes and underscores."
        )
    return token
