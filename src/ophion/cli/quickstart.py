"""`ophion quickstart`: runs a network of validators and an RPC node on this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ophion.cli.command import Command, CommandSession
from ophion.cli.quickstart_options import LogOptions, PlaceOptions, ProxyOptions, RunOptions, UpOptions
from ophion.errors import CommandError, ConfigError
from ophion.gateway.backends import BackendNetwork, ServiceKind
from ophion.quickstart import report
from ophion.quickstart.command_lines import node_options, program, proxy_options, shown
from ophion.quickstart.control_socket import send_command
from ophion.quickstart.lock_file import NetworkLock, holder
from ophion.quickstart.monitoring import commands as tool_commands
from ophion.quickstart.monitoring import installed
from ophion.quickstart.network_directory import (
    PLAN,
    SUPERVISOR_LOG,
    UNFINISHED,
    NetworkDirectory,
    discard_unfinished,
    prepare,
    where,
)
from ophion.quickstart.node_status import heights
from ophion.quickstart.plan import PROXY
from ophion.quickstart.ports import HOST, NetworkPorts, PortClaims, lay_out
from ophion.quickstart.supervisor import NetworkSupervisor
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.options import problems_of

_STOP_S: Final = 30.0
_DETACHED_S: Final = 90.0
_FOLLOW_S: Final = 0.2


def up(options: UpOptions, session: CommandSession) -> int:
    """Create a network and run it."""
    if problems := problems_of(options):
        raise ConfigError(problems)
    path, plan = options.place, options.plan
    if not (path / PLAN).exists():
        with PortClaims() as claims:
            lay_out(plan, installed(), claims.take)  # report a port that is in use before this command creates files
    prepare(path)
    lock = NetworkLock.take(path)
    if lock is None or (path / PLAN).exists():
        if lock is not None:
            lock.release()
        if options.print_commands and (path / PLAN).exists():
            return _print_commands(NetworkDirectory.open(path))
        raise CommandError(_taken(path))
    with lock:
        if discard_unfinished(path):
            print(f"The network in {path} was not finished: it is created again.", file=sys.stderr)
        work = NetworkDirectory.make(path, plan, SystemEntropy())
        if not options.print_commands and not options.detach:
            return _run(work, lock)
    return _print_commands(work) if options.print_commands else _detached(work)


def _taken(path: Path) -> str:
    running = holder(path)
    if running is None:
        NetworkDirectory.open(path)  # `open` raises an error for a network that can be neither resumed nor removed
        return (
            f"There is a network in {path} already, which does not run: `ophion quickstart resume{where(path)}` starts"
            f" it again, `ophion quickstart remove{where(path)}` takes it away."
        )
    return (
        f"A network runs in {path} already (process {running.pid}, http://{running.address}/): "
        f"`ophion quickstart list{where(path)}` shows it, `ophion quickstart stop{where(path)}` ends it."
    )


def resume(options: RunOptions, session: CommandSession) -> int:
    """Run a stopped network again."""
    path = options.place
    work = NetworkDirectory.open(path)
    os.umask(0o077)
    # the log folder may be missing, because the user may have deleted it
    work.log(SUPERVISOR_LOG).parent.mkdir(exist_ok=True)
    lock = NetworkLock.take(path)
    if lock is None:
        raise CommandError(_taken(path))
    if options.detach:
        lock.release()
        return _detached(work)
    with lock:
        return _run(work, lock)


def _run(work: NetworkDirectory, lock: NetworkLock) -> int:
    """Run the processes of a network until they are stopped."""
    with PortClaims() as claims:
        return _run_at(work, lay_out(work.plan, installed(), claims.take, work.layout), lock)


def _run_at(work: NetworkDirectory, layout: NetworkPorts, lock: NetworkLock) -> int:
    work.write_files(layout)
    began = time.monotonic()
    _say(report.begins(work.plan))

    def ready() -> None:
        _say(report.is_up(work.plan, time.monotonic() - began) + "\n")
        site = BackendNetwork.read(work.path / "site.json")
        for line in report.paragraphs(
            report.addresses(layout.address, site, work.path, work.where),
            report.accounts(work.plan),
            report.enclaves(work.enclave_keys()),
            [f"  Everything is in {work.path}. Ctrl-C or `ophion quickstart stop{work.where}` ends it."],
        ):
            _say(line)

    is_well = asyncio.run(_supervised(work, layout, lock, ready))
    _say("Stopped." if is_well else "Stopped, because it could not start.")
    return 0 if is_well else 1


async def _supervised(
    work: NetworkDirectory, layout: NetworkPorts, lock: NetworkLock, ready: Callable[[], None]
) -> bool:
    return await NetworkSupervisor(work, layout, lock, _say).run(ready)


def _say(line: str) -> None:
    """Print a line. Ignores a closed terminal, so that the network continues to run."""
    try:
        print(line, flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - stays open until the process ends


def _detached(work: NetworkDirectory) -> int:
    """Run a network in the background. Return when every node has a block."""
    log = work.log(SUPERVISOR_LOG)
    with log.open("wb") as output:
        process = subprocess.Popen(
            program(["quickstart", "resume", f"--directory={work.path}"]),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + _DETACHED_S
    try:
        while time.monotonic() < deadline:
            running = holder(work.path)
            if running is not None and running.pid == process.pid and running.is_ready:
                print(log.read_text(errors="replace").replace("Ctrl-C or ", ""), end="")
                return 0
            if process.poll() is not None:
                raise CommandError(log.read_text(errors="replace").strip() or "The network did not start.")
            time.sleep(0.05)
    except KeyboardInterrupt:
        # end the network after an interrupt, because its processes would keep running in the background
        process.terminate()
        process.wait()
        raise
    raise CommandError(f"The network has not started in {_DETACHED_S:.0f} s: see {log}.")


def _print_commands(work: NetworkDirectory) -> int:
    """Print the commands that manage a network."""
    layout = work.layout
    if holder(work.path) is None or layout is None:
        with PortClaims() as claims:
            # hold the port claims only while choosing ports, because this command starts no process
            layout = lay_out(work.plan, installed(), claims.take, layout)
        work.write_files(layout)
    for node in work.plan.nodes:
        print(f"# {node.name}\n{shown(node_options(work.plan, layout, node, work.path))}\n")
    print(f"# {PROXY}\n{shown(proxy_options(layout, work.path))}")
    for tool, command in tool_commands(work.path, layout).items():
        if tool in layout.tools:
            print(f"\n# {tool}\n{command}")
    return 0


def show(options: PlaceOptions, session: CommandSession) -> int:
    """Print the addresses of a network and the status of its nodes."""
    work = NetworkDirectory.open(options.place)
    running = holder(work.path)
    if running is None:
        print(_idle(work))
        return 1
    site = BackendNetwork.read(work.path / "site.json")
    found = asyncio.run(heights({node.name: node.places[ServiceKind.JSON_RPC].port for node in site.nodes}))
    is_down = PROXY not in running.processes
    for line in report.paragraphs(
        report.addresses(running.address, site, work.path, work.where),
        report.nodes(site, running.processes, found),
        report.enclaves(work.enclave_keys()),
        [f"  The {PROXY} is down: `ophion quickstart start {PROXY}{work.where}` starts it."] if is_down else [],
    ):
        print(line)
    return 0


def _idle(work: NetworkDirectory) -> str:
    return f"The network in {work.path} does not run: `ophion quickstart resume{work.where}` starts it."


def stop(options: PlaceOptions, session: CommandSession) -> int:
    """Stop the processes of a network. Its files stay."""
    work = NetworkDirectory.open(options.place)
    if not _stopped(work.path):
        print(f"The network in {work.path} does not run.")
        return 0
    print(
        f"Stopped. `ophion quickstart resume{work.where}` goes on where it was,"
        f" `ophion quickstart remove{work.where}` takes {work.path} away."
    )
    return 0


def _stopped(path: Path) -> bool:
    """Stop a network and wait until all processes have ended. Returns False if the network was not running."""
    if holder(path) is None:
        return False
    send_command(path, "stop")
    deadline = time.monotonic() + _STOP_S
    while holder(path) is not None:
        if time.monotonic() > deadline:
            raise CommandError(f"The network in {path} has not stopped after {_STOP_S:.0f} s.")
        time.sleep(0.05)
    return True


def remove(options: PlaceOptions, session: CommandSession) -> int:
    """Stop the processes of a network and delete its files."""
    path = options.place
    left = _removed_unfinished(path)
    if left is None:
        work = NetworkDirectory.open(path)
        _stopped(path)
        left = work.remove()
    if left:
        print(f"Removed, but {path} stays: it contains other files ({', '.join(left[:3])}).")
    else:
        print(f"Removed {path}.")
    return 0


def _removed_unfinished(path: Path) -> list[str] | None:
    """Delete an unfinished network. Returns the names of other files, which are not deleted.

    Returns None if the folder has no unfinished network, or if another process holds the lock of the network.
    """
    lock = NetworkLock.take(path) if (path / UNFINISHED).exists() else None
    if lock is None:
        return None
    with lock:
        work = NetworkDirectory.unfinished(path)
        return None if work is None else work.remove()


def kill(options: PlaceOptions, session: CommandSession) -> int:
    """Kill one process of a network."""
    return _order("kill", options, session)


def start(options: PlaceOptions, session: CommandSession) -> int:
    """Start one process of a network again."""
    return _order("start", options, session)


def _order(do: str, options: PlaceOptions, session: CommandSession) -> int:
    work = NetworkDirectory.open(options.place)
    if len(session.words) != 1:
        raise CommandError(f"Name the process to {do}: one of {', '.join(work.processes)}.")
    if holder(work.path) is None:
        raise CommandError(_idle(work))
    print(send_command(work.path, do, session.words[0]))
    return 0


def logs(options: LogOptions, session: CommandSession) -> int:
    """Print the logs of the processes."""
    work = NetworkDirectory.open(options.place)
    known = work.processes
    names = session.words or known
    if unknown := [name for name in names if name not in known]:
        raise CommandError(f"There is no {unknown[0]} in this network, but {', '.join(known)}.")
    width = max(map(len, names)) if len(names) > 1 else 0
    read = dict.fromkeys(names, 0)
    while True:
        for name in names:
            read[name] = _show_log(work.log(name), read[name], f"{name:<{width}} | " if width else "")
        if not options.follow:
            return 0
        sys.stdout.flush()
        time.sleep(_FOLLOW_S)


def _show_log(path: Path, position: int, prefix: str) -> int:
    """Print whole lines of a log from a position on. Returns the next position."""
    try:
        with path.open("rb") as file:
            if position > os.fstat(file.fileno()).st_size:
                position = 0  # the log file was replaced by a shorter file, so read it from its start
            file.seek(position)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                position += len(line)
                print(f"{prefix}{line.decode(errors='replace')}", end="")
    except FileNotFoundError:
        return 0
    return position


def proxy(options: ProxyOptions, session: CommandSession) -> int:
    """Run the proxy, which offers one address for all nodes of a network."""
    from ophion.gateway.process import run_gateway

    return run_gateway(BackendNetwork.read(options.site), HOST, options.port)


COMMANDS = (
    Command(
        "up",
        "Create and run a network: validators, an RPC node, and one address with a web interface.",
        up,
        UpOptions,
        examples=(
            "ophion quickstart up",
            "ophion quickstart up --consensus=ibft2 --validators=7 --block-period=1 --free-gas --detach",
            "ophion quickstart up --print-commands",
        ),
    ),
    Command(
        "list",
        "Show the addresses of a network and the status of its nodes.",
        show,
        PlaceOptions,
        examples=("ophion quickstart list",),
    ),
    Command(
        "stop",
        "Stop the processes of a network; its files stay.",
        stop,
        PlaceOptions,
        examples=("ophion quickstart stop",),
    ),
    Command(
        "resume",
        "Run a network that was stopped.",
        resume,
        RunOptions,
        examples=("ophion quickstart resume --detach",),
    ),
    Command(
        "remove",
        "Stop the processes of a network and delete its files.",
        remove,
        PlaceOptions,
        examples=("ophion quickstart remove --directory=my-network",),
    ),
    Command(
        "logs",
        "Show the logs of the processes of a network.",
        logs,
        LogOptions,
        words="[NODE]",
        examples=("ophion quickstart logs validator1 -f",),
    ),
    Command(
        "kill",
        "Kill one node, to see how the others react.",
        kill,
        PlaceOptions,
        words="NODE",
        examples=("ophion quickstart kill validator2",),
    ),
    Command(
        "start",
        "Start a stopped node again.",
        start,
        PlaceOptions,
        words="NODE",
        examples=("ophion quickstart start validator2",),
    ),
    Command(
        "proxy",
        "Serve the nodes of a network at one address. `up` starts it too.",
        proxy,
        ProxyOptions,
        examples=("ophion quickstart proxy --site=my-network/site.json --port=8080",),
    ),
)
