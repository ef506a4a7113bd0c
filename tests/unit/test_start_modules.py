"""The number of modules that a start imports. Nearly all of the start time is imports: 0.3 ms for each module.

A test fails if a start imports more modules than before. Then import the new module where it is first used, if a start
does not need it (decision 132), or raise the number.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ophion.sdk.chain import Chain
from tests.integration.command import environment

COMMAND = (
    "import gc, os, sys\n"
    # a started node and a finished export exclude all objects from collections
    "gc.freeze = lambda: (print(*sys.modules, flush=True), os._exit(0))\n"
    "from ophion.__main__ import main\n"
    "main()"
)
DEV = ("dev", "--rpc-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-port=0")


def imported(code: str, *arguments: str | Path) -> set[str]:
    """Return the names of the modules that a new process has imported."""
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, timeout=60)
    return set(ran.stdout.splitlines()[-1].split())


def own(modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name.partition(".")[0] == "ophion")


def check(modules: set[str], most: int, absent: set[str]) -> None:
    found = own(modules)
    assert len(found) <= most, "\n".join(found)
    assert not {name for name in modules if name.startswith(tuple(absent))}


def test_import_of_a_chain() -> None:
    modules = imported("import ophion, sys; ophion.Chain; print(*sys.modules)")
    check(modules, 149, {"uvloop", "httptools", "hashlib", "ophion.rpc.transport", "ophion.peers.", "ophion.cli"})


@pytest.mark.skipif(sys.platform != "linux", reason="modules of other systems differ")
def test_start_of_a_development_node() -> None:
    modules = imported(COMMAND, *DEV)
    check(
        modules, 268, {"_ssl", "_hashlib", "ast", "dis", "termios", "ophion.dev.fork.remote_state", "ophion.cli.help"}
    )
    assert "ophion.node.services" in modules


def test_export(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "data")
    chain.mine(2)
    chain.close()
    target = f"--to={tmp_path / 'tables'}"
    modules = imported(COMMAND, "export", "parquet", f"--data-path={tmp_path / 'data'}", "--network=dev", target)
    check(
        modules,
        62,
        {"asyncio", "_ssl", "pyarrow", "ast", "logging", "concurrent", "json", "queue", "ophion.node.config"}
        | {"ophion.peers", "ophion.chain."},
    )
    assert "ophion.data.export" in modules


def test_storage_commands() -> None:
    modules = imported("import sys, ophion.cli.storage; print(*sys.modules)")
    check(modules, 36, {"asyncio", "_ssl", "ophion.node.config", "ophion.peers", "ophion.chain.", "ophion.chainspec"})


def test_version() -> None:
    modules = imported("import sys; from ophion.__main__ import main; main(); print(*sys.modules)", "--version")
    check(modules, 33, {"asyncio", "logging", "platform.", "orjson", "ophion.node.config", "ophion.chainspec"})


def test_methods_that_are_imported_after_the_start() -> None:
    """A node imports the files of common methods soon after its start. They bring no engine of another network."""
    code = (
        "import sys, ophion.node.node\n"
        "from ophion.rpc.methods import all_methods\n"
        "for group in ('eth', 'net', 'debug', 'trace'):\n"
        "    while all_methods().load_more(group): pass\n"
        "print(*sys.modules)"
    )
    modules = imported(code)
    check(modules, 275, {"ophion.consensus.bft.engine", "ophion.consensus.clique_snapshot", "ophion.proofs"})
