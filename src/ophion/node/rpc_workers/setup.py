"""What a worker gets from its node when it starts."""

from __future__ import annotations

import pickle
from typing import cast

from msgspec import Struct

from ophion.chainspec.genesis import Genesis
from ophion.node.config import NodeConfig
from ophion.rpc.services.context import NodeInfo


class WorkerSetup(Struct, frozen=True):
    """Configuration and identity of the node, as of its start. Files may have changed since then."""

    config: NodeConfig
    genesis: Genesis
    node: NodeInfo
    services: frozenset[str]
    """Names of the services of the node (`RpcContext.provides`), which decide which methods are enabled."""
    is_measured: bool

    def encode(self) -> bytes:
        """Return the setup as bytes for a process of the same program."""
        return pickle.dumps(self)

    @classmethod
    def decode(cls, text: bytes) -> WorkerSetup:
        """Read the setup. The sender is the node that has started this process."""
        return cast("WorkerSetup", pickle.loads(text))  # safe, because only the node can write to the socket
