"""Runs all processes of a network, from start to stop.

A node that ends is reported and not restarted, so that the effect of a killed validator can be observed. The supervisor
stops on Ctrl-C, SIGTERM, a closed terminal, `ophion quickstart stop` or a deleted directory. It then stops all
processes, and kills processes that do not end within some seconds.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ophion.errors import CommandError
from ophion.gateway.backends import ServiceKind
from ophion.quickstart.child_process import NetworkProcess
from ophion.quickstart.command_lines import node_options, program, proxy_options
from ophion.quickstart.control_socket import listen
from ophion.quickstart.lock_file import NetworkLock, RunningNetwork
from ophion.quickstart.network_directory import CONTROL, PLAN, NetworkDirectory
from ophion.quickstart.node_status import heights
from ophion.quickstart.plan import PROXY, Consensus
from ophion.quickstart.ports import NetworkPorts
from ophion.runtime.interrupts import stop_signals

_FIRST_BLOCK_S: Final = 60.0
_POLL_S: Final = 0.1
_STOP_S: Final = 15.0
_LOOK_S: Final = 2.0
_LAST_BYTES: Final = 16 * 1024


class NetworkSupervisor:
    """Runs a network until it is stopped."""

    def __init__(
        self, work: NetworkDirectory, layout: NetworkPorts, lock: NetworkLock, say: Callable[[str], object]
    ) -> None:
        """Create the network supervisor. `say` prints a line on the terminal."""
        self._work = work
        self._layout = layout
        self._lock = lock
        self._say = say
        self._stop = asyncio.Event()
        self._ended: set[str] = set()
        self._is_ready = False
        self._is_resumed = work.has_run
        commands = {
            node.name: program(node_options(work.plan, layout, node, work.path)) for node in work.plan.nodes
        } | {PROXY: program(proxy_options(layout, work.path))}
        self._children = {name: NetworkProcess(name, command, work.log(name)) for name, command in commands.items()}

    async def run(self, ready: Callable[[], None]) -> bool:
        """Start all processes and wait until the network stops. Returns False if the network could not be started.

        Calls `ready` when every node has a new block and the proxy answers.
        """
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGCHLD, self._notice)
        orders = await listen(self._work.path, self._order)
        try:
            for child in self._children.values():
                child.start()
            self._record()
            is_well = await self._first_blocks()
            if is_well and not self._stop.is_set():
                self._is_ready = True
                ready()
                # record that the network is ready only after `ready` has printed, because a command that waits for this
                # record prints the log
                self._record()
            if is_well:
                await self._until_stopped()
            return is_well
        finally:
            orders.close()
            await self._shut_down()
            with suppress(OSError):
                os.unlink(CONTROL)

    async def _until_stopped(self) -> None:
        """Wait for a stop command, or until the directory is deleted, because then no command can reach the network."""
        while not self._stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), _LOOK_S)
            try:
                os.stat(self._work.path / PLAN)
            except FileNotFoundError:
                self._say(f"{self._work.path} is gone.")
                return
            except OSError:
                continue  # the disk is unreachable, so the directory may still exist

    async def _first_blocks(self) -> bool:
        """Wait until every node has a block of this run and the proxy forwards requests. Returns False after a failure.

        In a network without empty blocks, a response of each node is enough.
        """
        plan = self._work.plan
        more = 0 if plan.consensus is Consensus.DEV and not plan.period_s else 1
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FIRST_BLOCK_S
        nodes = {name: ports.http for name, ports in self._layout.nodes.items()}
        missing: dict[str, int | str] = {**nodes, PROXY: f"{self._layout.proxy}/{ServiceKind.JSON_RPC.value}"}
        needed = {PROXY: 0} | ({} if self._is_resumed else dict.fromkeys(nodes, more))
        while missing and not self._stop.is_set():
            for name, found in (await heights(missing)).items():
                if found is not None and found >= needed.setdefault(name, found + more):
                    del missing[name]
            if self._ended and not self._stop.is_set():
                for name in sorted(self._ended):
                    self._say(self._last_words(name))
                return False
            if missing and loop.time() > deadline:
                self._say(f"No block after {_FIRST_BLOCK_S:.0f} s on {', '.join(missing)}: see {self._work.path}/logs.")
                return False
            if missing:
                await asyncio.sleep(_POLL_S)
        return True

    def _last_words(self, name: str) -> str:
        """Return the last output of a process that failed to start."""
        return f"{name} did not start ({self._children[name].ending}): {self._last_line(name) or 'no output'}"

    def _last_line(self, name: str) -> str:
        """Return the last line of a log, or an empty text if the log is missing."""
        with suppress(OSError), self._work.log(name).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
            return file.read().decode(errors="replace").strip().rpartition("\n")[2]
        return ""

    def _notice(self) -> None:
        """Record the processes that have ended, and report them once the network is ready."""
        for name, child in self._children.items():
            ending = child.ending
            if ending is not None and name not in self._ended:
                self._ended.add(name)
                self._record()
                if self._is_ready and not self._stop.is_set():
                    command = f"ophion quickstart start {name}{self._work.where}"
                    why = ending if ending.startswith("signal") else f"{ending}: {self._last_line(name)}"
                    self._say(f"{name} has ended ({why}); `{command}` starts it again.")

    def _record(self) -> None:
        processes = {name: child.pid for name, child in self._children.items()}
        alive = {name: pid for name, pid in processes.items() if pid is not None}
        self._lock.write(RunningNetwork(os.getpid(), self._layout.address, self._is_ready, alive))

    def _order(self, do: str, name: str | None) -> str:
        """Execute a command of another terminal."""
        if do == "stop":
            self._stop.set()
            return "stopping"
        child = self._children.get(name or "")
        if child is None:
            raise CommandError(f"There is no {name} in this network. Its processes: {', '.join(self._children)}.")
        if self._stop.is_set():
            raise CommandError("The network is being stopped.")
        if do == "kill":
            if child.pid is None:
                raise CommandError(f"{name} does not run.")
            child.signal(signal.SIGKILL)
            return f"{name} is killed."
        if do == "start":
            if child.pid is not None:
                raise CommandError(f"{name} already runs (process {child.pid}).")
            child.start()
            self._ended.discard(child.name)
            self._record()
            return f"{name} started (process {child.pid})."
        raise CommandError(f"Unknown order: {do}")

    async def _shut_down(self) -> None:
        """Stop all processes, and kill processes that do not end in time. Returns when all processes have ended."""
        self._stop.set()
        for child in self._children.values():
            child.signal(signal.SIGTERM)
            # also continue the process, because a suspended process does not handle SIGTERM
            child.signal(signal.SIGCONT)
        deadline = asyncio.get_running_loop().time() + _STOP_S
        while any(child.pid is not None for child in self._children.values()):
            if asyncio.get_running_loop().time() > deadline:
                for child in self._children.values():
                    child.signal(signal.SIGKILL)
            await asyncio.sleep(0.02)
