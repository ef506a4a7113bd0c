"""`ophion shell`: a Python console with a chain.

Without a data path the chain is new and in memory. With a data path, the chain branches off the chain in that database.
A running node may use the database at the same time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ophion.abi.artifact import ArtifactFolder
from ophion.cli.command import Command, CommandSession
from ophion.errors import CommandError
from ophion.runtime.options import Options, at_least, option
from ophion.sdk.chain import Chain


class ShellOptions(Options):
    """Options: chain, contracts and command of `ophion shell`."""

    at: int | None = option(
        "--at", default=None, check=at_least(0), metavar="BLOCK", help="Block to start from. (default: the latest)"
    )
    url: str | None = option("--url", default=None, help="Use a running node instead of a database.")
    abi: Path | None = option(
        "--abi", default=None, metavar="DIRECTORY", help="Compiled contracts, available as `contracts`."
    )
    command: str | None = option("--command", default=None, metavar="CODE", help="Run this code and exit.")


def shell(options: ShellOptions, session: CommandSession) -> int:
    """Open the Python console."""
    chain = _chain(options, session)
    names: dict[str, Any] = {"Chain": Chain, "chain": chain, "accounts": chain.accounts}
    if options.abi is not None:
        if not options.abi.is_dir():
            raise CommandError(f"--abi: {options.abi} is not a directory.")
        names["contracts"] = ArtifactFolder([options.abi])
    try:
        if options.command is not None:
            exec(compile(options.command, "<command>", "exec"), names)
        else:
            _interact(names, f"{chain!r}. Names: {', '.join(names)}.")
    finally:
        chain.close()
    return 0


def _chain(options: ShellOptions, session: CommandSession) -> Chain:
    if options.url is not None:
        if options.at is not None:
            raise CommandError("--at belongs to a database: a running node has its own head. Use --data-path.")
        return Chain.connect(options.url)
    config = session.settings.config
    if session.settings.is_given("--data-path"):
        return Chain.read(config.data.data_path, genesis=config.network.genesis_file, at=options.at)
    if options.at is not None:
        raise CommandError("--at needs --data-path: a new chain has one block.")
    return Chain(genesis=config.network.genesis_file)


def _interact(names: dict[str, Any], banner: str) -> None:
    """Open an IPython console, or Python's own console if IPython is not installed."""
    try:
        from IPython import start_ipython
    except ImportError:
        import code

        try:
            import readline
            import rlcompleter

            readline.set_completer(rlcompleter.Completer(names).complete)
            readline.parse_and_bind("tab: complete")
        except ImportError:
            pass  # this build of Python has no line editing
        code.interact(f"{banner}\nPython {sys.version.split()[0]}. Install IPython for more comfort.", local=names)
        return
    print(banner)
    start_ipython(argv=["--no-banner"], user_ns=names)


COMMANDS = (
    Command(
        "shell",
        "Open a Python console with a chain: new, of a database, or of a running node.",
        shell,
        ShellOptions,
        examples=(
            "ophion shell",
            "ophion shell --data-path=data --at=100",
            "ophion shell --url=http://127.0.0.1:8545 --abi=out",
            "ophion shell --command='print(chain.accounts[0].balance)'",
        ),
    ),
)
