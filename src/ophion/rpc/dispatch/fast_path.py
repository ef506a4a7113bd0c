"""Fast paths of the dispatcher: plain requests that the Rust extension reads without building a JSON document.

    body -> PlainRequests.read -> answer            a read at the latest block that Rust answers by itself
                               -> raw transaction   goes to the pool without a handler
                               -> id, name, params  any other plain request; continues in the dispatcher
                               -> None              not plain: the dispatcher parses the body

Rust itself answers four methods: eth_blockNumber, eth_getBalance, eth_getTransactionCount and eth_call at the latest
block. Their handlers in rpc/methods are the slow path, which gives the same answers.
tests/unit/rpc/dispatch/test_fast_path.py compares both paths; for eth_sendRawTransaction,
tests/unit/rpc/dispatch/test_raw_transaction_reply.py does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ophion.errors import PoolRejected
from ophion.native.messages import PlainRequests as NativePlainRequests
from ophion.pool.events import Admission, hash_or_raise
from ophion.rpc.schema.method_table import BoundMethod
from ophion.rpc.schema.wire_types import encode_data
from ophion.rpc.transport.replies import SUCCESS, Complete, PendingReply


class PlainRequests:
    """Reads plain requests for one dispatcher, and learns which methods Rust may answer."""

    def __init__(self) -> None:
        self._requests = NativePlainRequests()
        self.read: Callable[[bytes], bytes | tuple[bytes, str, Any] | None] = self._requests.read
        """Reads one message. Returns the answer, or (id, method name, params) of a plain request, or None if the
        message is not a plain request.

        Params of type `bytes` are a decoded raw transaction.
        """

    def learn(self, name: str, bound: BoundMethod) -> None:
        """Let Rust answer further plain requests of a method, if Rust implements the method."""
        if bound.latest_read is not None:
            self._requests.answer(name, bound.latest_read)


class RawTransactionReply(PendingReply[Complete], kw_only=True, eq=False):
    """The reply to eth_sendRawTransaction, and at the same time the `Arrival` that the pool resolves (pool/intake.py).

    One object is cheaper than a future with a callback: thousands of transactions arrive in a second.
    """

    raws: tuple[bytes, ...]
    name: str
    id_text: bytes
    failed: Callable[[BaseException, str, bytes], Complete]
    """Returns the error response for an exception, a method name and an id."""
    is_local: bool = True
    takes_early_answer: bool = True

    def answer(self, admissions: list[Admission]) -> None:
        try:
            hash = hash_or_raise(admissions)
        except PoolRejected as error:
            self.fail(error)
        else:
            self.resolve(SUCCESS % (self.id_text, encode_data(hash)))

    def fail(self, error: Exception) -> None:
        if not self.is_done:
            self.resolve(self.failed(error, self.name, self.id_text))
