"""The directory of a network.

network.json              the plan; a directory without it is not a network
unfinished-network.json   the plan while the network is being created
genesis.json              the genesis file, created once like the keys
<node>/                   a data path for each node, with its key
site.json                 all addresses; rewritten at every start. Static nodes and permission files are also
                          rewritten, but keep the nodes that the operator added
monitoring/               configuration of Prometheus and Grafana
logs/<process>.log        output of each process
lock, control             exist while the network runs
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ophion.errors import CommandError
from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceAddress
from ophion.native.crypto import PrivateKey
from ophion.node.node_key_file import load_key, new_key, write_text
from ophion.permissions.options import DEFAULT_FILE
from ophion.quickstart.command_lines import MARKER_KEY
from ophion.quickstart.genesis import genesis_document
from ophion.quickstart.lock_file import NAME as LOCK
from ophion.quickstart.lock_file import holder
from ophion.quickstart.monitoring import FOLDER as MONITORING
from ophion.quickstart.monitoring import write_configuration
from ophion.quickstart.plan import PROXY, Consensus, NetworkPlan, PlannedRole
from ophion.quickstart.ports import HOST, NetworkPorts
from ophion.runtime.clock import Entropy
from ophion.runtime.operator_files import content_of, force_directory

DEFAULT_DIRECTORY: Final = Path("ophion-quickstart")
"""The default directory of a network."""
CONTROL: Final = "control"
ENCLAVE_KEY: Final = Path("privacy") / "nodeKey.pub"
"""File in which the embedded enclave writes its public key."""
PLAN: Final = "network.json"
UNFINISHED: Final = "unfinished-network.json"
"""The plan of a network that is being created, or whose creation was killed."""
PORTS: Final = "ports.json"
LOGS: Final = "logs"
SUPERVISOR_LOG: Final = "quickstart"
_FILES: Final = ("genesis.json", "site.json", CONTROL, PORTS, UNFINISHED, PLAN)
"""Files in removal order. The file that identifies the directory is last."""
_HALF_WRITTEN: Final = re.compile(r"\.(.+)\.[0-9a-f]{16}")
"""Name of a temporary file that a killed process has left."""


class NetworkDirectory:
    """A directory with a network."""

    def __init__(self, path: Path, plan: NetworkPlan) -> None:
        self.path = path
        self.plan = plan
        self.where = where(path)

    @classmethod
    def open(cls, path: Path) -> NetworkDirectory:
        """Open a network. Raises `CommandError` if the directory has no network."""
        if not (path / PLAN).exists():
            raise CommandError(_missing(path))
        return cls(path, NetworkPlan.read(path / PLAN))

    @classmethod
    def unfinished(cls, path: Path) -> NetworkDirectory | None:
        """Return an unfinished network, if any. The caller holds the lock."""
        return cls(path, NetworkPlan.read(path / UNFINISHED)) if (path / UNFINISHED).exists() else None

    @classmethod
    def make(cls, path: Path, plan: NetworkPlan, entropy: Entropy) -> NetworkDirectory:
        """Create a network: keys and genesis. Leaves no files after a failure."""
        work = cls(path, plan)
        try:
            with explained(path):
                work._make(entropy)
        except BaseException:
            work.remove()
            raise
        return work

    def _make(self, entropy: Entropy) -> None:
        path, plan = self.path, self.plan
        # write the plan before all other files, so that a later command recognises an interrupted run
        write_text(path / UNFINISHED, plan.text())
        (path / LOGS).mkdir()
        keys = {node.name: new_key(entropy) for node in plan.nodes}
        for name, key in keys.items():
            (path / name).mkdir(mode=0o700)
            write_text(path / name / "key", f"0x{key.secret().hex()}", mode=0o600)
        markers = {node.name: new_key(entropy) for node in plan.nodes if node.role is PlannedRole.MEMBER}
        for name, key in markers.items():
            write_text(path / name / MARKER_KEY, f"0x{key.secret().hex()}", mode=0o600)
        if plan.consensus is not Consensus.DEV:
            members = [keys[node.name].address for node in plan.nodes if node.role is PlannedRole.VALIDATOR]
            genesis = genesis_document(plan, members, [key.address for key in markers.values()])
            write_text(path / "genesis.json", json.dumps(genesis, indent=2) + "\n")
        # rename the plan after all other files are written, because its final name marks the network as complete
        os.replace(path / UNFINISHED, path / PLAN)
        force_directory(path)

    def write_files(self, layout: NetworkPorts) -> None:
        """Write the files that depend on ports: static nodes, permissions, addresses."""
        enodes = {name: self._enode(name, layout) for name in layout.nodes}
        with explained(self.path):
            for name in layout.nodes:
                static, rules = (self.path / name / file for file in ("static-nodes.json", DEFAULT_FILE))
                others = [enode for other, enode in enodes.items() if other != name]
                others += _added_nodes(static, json.loads, enodes.values())
                write_text(static, json.dumps(others, indent=2) + "\n")
                if self.plan.has_permissions:
                    permitted = [*enodes.values(), *_added_nodes(rules, _allowlist, enodes.values())]
                    lines = ",\n".join(f'  "{enode}"' for enode in permitted)
                    write_text(rules, f"nodes-allowlist = [\n{lines},\n]\n")
            nodes = tuple(
                BackendNode(node.name, node.role.value, layout.nodes[node.name].places, enodes[node.name])
                for node in self.plan.nodes
            )
            tools = {tool: ServiceAddress(HOST, port) for tool, port in layout.tools.items()}
            BackendNetwork("quickstart", self.plan.consensus.value, nodes, tools).write(self.path / "site.json")
            write_configuration(self.path, layout)
            write_text(self.path / PORTS, layout.text())

    @property
    def layout(self) -> NetworkPorts | None:
        """Return the ports of the current or last run, or None before the first run."""
        return NetworkPorts.read(self.path / PORTS)

    @property
    def has_run(self) -> bool:
        """Whether any node has a database from an earlier run."""
        return any((self.path / node.name / "database").exists() for node in self.plan.nodes)

    def enclave_keys(self) -> dict[str, str]:
        """Return the existing public keys of the members' enclaves, by node."""
        files = {
            node.name: self.path / node.name / ENCLAVE_KEY
            for node in self.plan.nodes
            if node.role is PlannedRole.MEMBER
        }
        return {name: file.read_text().strip() for name, file in files.items() if file.exists()}

    def log(self, process: str) -> Path:
        """Return the log file of a process."""
        return self.path / LOGS / f"{process}.log"

    @property
    def processes(self) -> tuple[str, ...]:
        """Names of all processes of the network."""
        return (*(node.name for node in self.plan.nodes), PROXY)

    def remove(self) -> list[str]:
        """Delete the network. Returns the names of other files, which stay."""
        with explained(self.path):
            self.empty()
            (self.path / LOCK).unlink(missing_ok=True)
            left = sorted(entry.name for entry in os.scandir(self.path))
            if not left:
                self.path.rmdir()
        return left

    def begun(self) -> dict[str, tuple[str, ...]]:
        """Return the folders of an unfinished network and their files."""
        return {LOGS: ()} | {node.name: ("key", MARKER_KEY) for node in self.plan.nodes}

    def empty(self) -> None:
        """Delete the network except for the lock, which the caller may hold."""
        for name in (*(node.name for node in self.plan.nodes), LOGS, MONITORING):
            if (self.path / name).is_dir():
                shutil.rmtree(self.path / name)
        _sweep(self.path)
        for name in _FILES:
            (self.path / name).unlink(missing_ok=True)

    def _enode(self, name: str, layout: NetworkPorts) -> str:
        key: PrivateKey = load_key(self.path / name / "key")
        return f"enode://{key.public_key.hex()}@{HOST}:{layout.nodes[name].p2p}"


def _added_nodes(file: Path, read: Callable[[str], Any], own: Iterable[str]) -> list[str]:
    """Return the nodes that the operator added to a list. Excludes the network's own nodes, whose ports may have
    changed.
    """
    ids = {_id(url) for url in own}
    try:
        return [url for url in read(content_of(file).decode()) if _id(url) not in ids]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []  # the file is missing or not a valid list


def _allowlist(text: str) -> Any:
    return tomllib.loads(text)["nodes-allowlist"]


def _id(url: str) -> str:
    return url.partition("@")[0].lower()


def where(path: Path) -> str:
    """Return the command option that selects this network, relative to the current directory."""
    try:
        is_default = path == DEFAULT_DIRECTORY.resolve()
    except FileNotFoundError:  # the current directory was deleted
        is_default = False
    return "" if is_default else " " + shlex.quote(f"--directory={path}")


def prepare(path: Path) -> None:
    """Create the directory of a new network if it is missing, and refuse other files in it. The directory may contain a
    network, which the caller handles. From now on, this process creates files that only its user can read.
    """
    with explained(path):
        os.umask(0o077)
        path.mkdir(parents=True, exist_ok=True)
        if not (path / PLAN).exists() and not (path / UNFINISHED).exists():
            _refuse_others(path, {})


def discard_unfinished(path: Path) -> bool:
    """Delete an unfinished network. Returns whether an unfinished network existed. The caller holds the lock.

    Raises `CommandError` and deletes nothing if other files are present.
    """
    with explained(path):
        work = NetworkDirectory.unfinished(path)
        _refuse_others(path, work.begun() if work is not None else {})
        if work is not None:
            work.empty()
        _sweep(path)
    return work is not None


def _refuse_others(path: Path, folders: Mapping[str, tuple[str, ...]]) -> None:
    """Raise `CommandError` for files that this package does not write."""
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        other = None if _is_of(entry.name, (*_FILES, LOCK)) else entry.name
        if entry.name in folders and entry.is_dir(follow_symlinks=False):
            inside = sorted(name for name in os.listdir(entry) if not _is_of(name, folders[entry.name]))
            other = f"{entry.name}/{inside[0]}" if inside else None
        if other is not None:
            raise CommandError(f"{path} contains other files ({other}): choose another directory.")


def _sweep(path: Path) -> None:
    """Delete temporary files that an interrupted write has left."""
    for name in os.listdir(path):
        if name not in _FILES and _is_of(name, _FILES):
            (path / name).unlink()


def _is_of(name: str, files: tuple[str, ...]) -> bool:
    half = _HALF_WRITTEN.fullmatch(name)
    return (half[1] if half else name) in files


def _missing(path: Path) -> str:
    """Explain why the directory has no network."""
    if not (path / UNFINISHED).exists():
        return f"There is no network in {path}: `ophion quickstart up{where(path)}` creates one."
    if (maker := holder(path)) is not None:
        return f"The network in {path} is being created (process {maker.pid}): wait until it is finished."
    return (
        f"The network in {path} was not finished: `ophion quickstart up{where(path)}` creates it again,"
        f" `ophion quickstart remove{where(path)}` takes it away."
    )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the file system into one-line `CommandError`s."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"The directory {path} cannot be used: {error.strerror or error}.") from error
