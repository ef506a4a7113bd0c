"""Replacements for the parts that a worker lacks: pool, producer, peers, filters, pending block. Using one raises
`NeedsNode`.

The dispatcher of the worker then forwards the request. Handlers of local methods only read, so a handler can be
abandoned after it has begun.
"""

from __future__ import annotations

from typing import Any

from ophion.chain.queries import BlockView, ChainQueries
from ophion.primitives.types import Hash32
from ophion.rpc.schema.method_table import SubmitTransaction
from ophion.rpc.services.context import RpcContext


class NeedsNode(Exception):
    """Raised in a worker if only the node can answer. Not an `OphionError`, so that no handler takes it for an error of
    the client.
    """


class OnlyInNode:
    """A service that only the node has."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NeedsNode


class WorkerPool(OnlyInNode):
    """The pool, for methods that look for a transaction in the pool and in the chain."""

    def __init__(self, queries: ChainQueries) -> None:
        self._queries = queries

    def get(self, hash: Hash32) -> None:
        """Return None for a mined transaction, which is not in the pool. Raises `NeedsNode` for other transactions."""
        if self._queries.transaction_position(hash) is None:
            raise NeedsNode


class WorkerMining(OnlyInNode):
    """Replaces the block producer, as far as `eth_getTransactionReceipt` needs it."""

    def note_lookup(self) -> None:
        """Do nothing, because only development networks, which have no workers, need this call."""


class WorkerQueries(ChainQueries):
    """Chain queries of a worker. The worker builds no pending block."""

    async def pending(self) -> BlockView:
        raise NeedsNode


class WorkerContext(RpcContext, frozen=True):
    """The context of a worker. The same methods are enabled as in the node."""

    services: frozenset[str] = frozenset()
    """Names of the services that the node has."""

    def provides(self, service: str) -> bool:
        """Return whether the node has a service, because the worker forwards requests that it cannot answer."""
        return service in self.services

    @property
    def submit(self) -> SubmitTransaction:
        """Return a function that is not called: transactions are forwarded."""
        return needs_node


def needs_node(*values: Any) -> Any:
    """Raise `NeedsNode`. Replaces the handler of a method that only the node answers."""
    raise NeedsNode
