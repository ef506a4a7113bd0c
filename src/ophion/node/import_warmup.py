"""Imports modules that clients will need, after the node has started.

A node answers its first request as early as it can. Modules that this answer does not need are imported afterwards, one
at a time with pauses. So a request waits for one import at most. Modules for traces are imported if an interface offers
them. Modules for rare requests (permissions, private transactions, the web interface) are imported at first use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Final

from ophion.node.interface_options import ApiGroup
from ophion.node.listeners import PortService
from ophion.rpc.methods import all_methods

_PREPARED: Final = ("jsonrpc", "ws")
_GROUPS: Final = ("eth", "net")
_OPTIONAL_GROUPS: Final = (ApiGroup.DEBUG, ApiGroup.TRACE)
_REST_S: Final = 0.2
_PAUSE_S: Final = 0.02


class ImportWarmup:
    """A service that imports modules during the first tenths of a second and then does nothing."""

    name = "warming"

    def __init__(self, listening: Mapping[str, PortService], offered: Collection[ApiGroup] = ()) -> None:
        self._listening = listening
        self._groups = (*_GROUPS, *(group.value for group in _OPTIONAL_GROUPS if group in offered))

    async def run(self, ready: Callable[[], None]) -> None:
        """Import the modules, then wait to be cancelled."""
        ready()
        await asyncio.sleep(_REST_S)
        await self.warm()
        await asyncio.get_running_loop().create_future()

    async def warm(self) -> None:
        """Import the modules with pauses between them."""
        for name in _PREPARED:
            if name in self._listening:
                self._listening[name].prepare()
                await asyncio.sleep(_PAUSE_S)
        if any(name in self._listening for name in _PREPARED):
            for group in self._groups:
                is_more = True
                while is_more:
                    is_more = all_methods().load_more(group)
                    await asyncio.sleep(_PAUSE_S)
