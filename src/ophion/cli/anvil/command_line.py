"""The command line of Anvil: `ophion anvil …`, or a link to `ophion` with the name anvil.

It starts `ophion dev --preset=anvil`. Several nodes on one machine need only different ports of JSON-RPC, so WebSocket
has no fixed port of its own, and GraphQL and the web interface are off. With `--host 0.0.0.0`, which containers use for
Anvil, the node serves other machines and logs a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ophion.cli.anvil.options import HOSTS_VARIABLE
from ophion.errors import ConfigError
from ophion.runtime.options import is_loopback
from ophion.version import client_version

WORD: Final = "anvil"
EXIT_USAGE: Final = 2
_VERSION: Final = "1.7.1"
_SETTINGS: Final = {
    "OPHION_RPC_WS_PORT": "0",
    "OPHION_GRAPHQL_HTTP_ENABLED": "false",
    "OPHION_PAGE_HTTP_ENABLED": "false",
}
_OPEN_SETTINGS: Final = {"OPHION_DEV_UNLOCKED_ACCOUNTS": "true", "OPHION_HOST_ALLOWLIST": "*"}
"""Settings of a node that other machines reach."""
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1")
_COMPLETIONS: Final = ("completions", "com")


def anvil_start(tokens: Sequence[str], environ: Mapping[str, str]) -> tuple[list[str], Mapping[str, str]] | None:
    """Return the command line and the variables of the node that a command line of Anvil starts.

    Returns None if the command line only asks for a text, which is printed. Raises `ConfigError` for words that Anvil
    does not have.
    """
    words = list(tokens)
    command = next((word for word in words[:1] if not word.startswith("-")), None)
    if command == "help" or "--help" in words or "-h" in words:
        from ophion.cli.anvil.help import anvil_help  # lazy import: a start does not need the help

        print(anvil_help())
        return None
    if "--version" in words or "-V" in words:
        print(f"anvil Version: {_VERSION}\n{client_version()}")
        return None
    if command in _COMPLETIONS:
        from ophion.cli.anvil.completions import completions

        print(completions(words[1:]))
        return None
    if command is not None:
        raise ConfigError(f"Unknown command: '{command}'. Anvil has the commands completions and help.")
    settings, hosts = dict(_SETTINGS), _hosts(words, environ)
    if any(not is_loopback(host) for host in hosts):
        settings |= _OPEN_SETTINGS
    elif hosts:
        settings["OPHION_HOST_ALLOWLIST"] = ",".join(dict.fromkeys((*_LOCAL_NAMES, *hosts)))
    return ["dev", "--preset=anvil", *words], {**settings, **environ}


def _hosts(words: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the addresses that the command line or Anvil's variable names."""
    texts = []
    for number, word in enumerate(words):
        flag, separator, text = word.partition("=")
        if flag == "--host":
            texts.append(text if separator else "".join(words[number + 1 : number + 2]))
    given = ",".join(texts) or environ.get(HOSTS_VARIABLE, "")
    return [host.strip() for host in given.split(",") if host.strip()]
