"""`ophion dev`: a development chain with all interfaces switched on.

The preset is a list of ordinary options. The command line, the environment or a file may override each option.
`--print-command` shows the equivalent command line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec.structs import replace

from ophion.node.config import NodeConfig
from ophion.node.dev_options import DevPreset
from ophion.node.interface_options import CHEAT_CODES, ApiGroup
from ophion.runtime.options import LoadedConfig, OptionSource, OptionSpec, OptionTexts, load, read_flag, specs_of

# SQL queries of clients stay off unless the user enables the group
_GROUPS = [group for group in ApiGroup if group is not ApiGroup.SQL]
_EVERY_GROUP = ",".join(group.name for group in _GROUPS)
_GROUPS_WITHOUT_CHEATS = ",".join(group.name for group in _GROUPS if group not in CHEAT_CODES)
_LOCAL_PAGES = ",".join(
    (
        "http://localhost:*",
        "http://127.0.0.1:*",
        "https://localhost:*",
        "https://127.0.0.1:*",
        "chrome-extension://*",
        "moz-extension://*",
        "titanoboa",
    )
)
"""Allowed origins: local pages and browser extensions. A foreign page in the developer's browser must not control the
node.

titanoboa sends its name as origin. A web page cannot send this origin, because browsers send `scheme://host` or `null`.
"""

_UNREAD_BYTES = 128 * 1024 * 1024
"""Send buffer of a WebSocket client. `anvil_mine` makes thousands of blocks a second; subscribers that decode each
block in Python or JavaScript read more slowly.
"""

DEV_OPTIONS = (
    "--network=dev",
    "--miner-enabled=true",
    "--miner-coinbase=0xfe3b557e8fb62b89f4916b721be55ceb828dbd73",
    "--min-gas-price=0",
    "--dev-unlocked-accounts=true",
    "--rpc-error-wording=modern",
    "--rpc-http-enabled=true",
    f"--rpc-http-api={_EVERY_GROUP}",
    f"--rpc-http-cors-origins={_LOCAL_PAGES}",
    "--rpc-ws-enabled=true",
    f"--rpc-ws-api={_EVERY_GROUP}",
    f"--rpc-ws-max-unread-size={_UNREAD_BYTES}",
    "--graphql-http-enabled=true",
    f"--graphql-http-cors-origins={_LOCAL_PAGES}",
    "--page-http-enabled=true",
    "--p2p-enabled=false",
    "--durable-commits=false",
    "--temporary-data=true",
)
"""Options of `ophion dev`. The host allow list keeps its default, because all services listen on loopback."""

PRESET_OPTIONS = (
    "--rpc-tx-feecap=0",
    "--miner-coinbase=0x0000000000000000000000000000000000000000",
    "--rpc-ws-port=0",
    "--graphql-http-port=0",
)
"""Options that --dev-preset adds. Anvil and Hardhat's node have one port, so projects start several nodes on
neighbouring ports.
"""
_ANVIL_OPTIONS = ("--rpc-error-wording=anvil", "--tx-pool-replace-by-fee-only=true")
"""Options that --dev-preset=anvil adds."""

_LEFT_OUT_WITH = {
    "network": ("genesis-file",),
    "dev-unlocked-accounts": ("genesis-file",),
    "temporary-data": ("data-path",),
    "page-http-enabled": ("rpc-http-tls-enabled", "rpc-ws-tls-enabled", "graphql-tls-enabled"),
    "p2p-enabled": (
        "p2p-host",
        "p2p-interface",
        "p2p-port",
        "bootnodes",
        "static-nodes-file",
        "discovery-enabled",
        "max-peers",
        "nat-method",
    ),
}
"""Options of the preset, each with the user options that make the preset omit it."""


def with_tokens(loaded: LoadedConfig[NodeConfig], tokens: Sequence[str]) -> LoadedConfig[NodeConfig]:
    """Add arguments of the `dev` command as options of the node. Options that are already given stay unchanged."""
    if not tokens:
        return loaded
    options = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    given = dict(loaded.given)
    for token in tokens:
        found = read_flag(token, deque(), options)
        given.setdefault(found.spec.name, found)
    return load(NodeConfig, given.values())


def with_dev_preset(loaded: LoadedConfig[NodeConfig]) -> LoadedConfig[NodeConfig]:
    """Add the options of the preset that the user has not given."""
    options = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}
    given = dict(loaded.given)
    # the preset enables cheat codes only on chains without other nodes
    has_peers = any(name in given for name in _LEFT_OUT_WITH["p2p-enabled"])
    if "p2p-enabled" in given:
        has_peers = loaded.config.peers.enabled
    is_alone = "genesis-file" not in given and not has_peers
    preset = loaded.config.dev.preset
    own = _ANVIL_OPTIONS if preset is DevPreset.ANVIL else ()
    for token in (*own, *(PRESET_OPTIONS if preset is not None else ()), *DEV_OPTIONS):
        if not is_alone and token.endswith(f"={_EVERY_GROUP}"):
            token = token.replace(_EVERY_GROUP, _GROUPS_WITHOUT_CHEATS)
        found = read_flag(token, deque(), options)
        name = found.spec.name
        if name in given or any(other in given for other in _LEFT_OUT_WITH.get(name, ())):
            continue
        if _is_idle(found.spec, loaded, options):
            continue
        given[name] = replace(found, source=OptionSource.FILE, label=f"preset option '--{name}'")
    return load(NodeConfig, given.values())


def _is_idle(spec: OptionSpec, loaded: LoadedConfig[NodeConfig], options: Mapping[str, OptionSpec]) -> bool:
    """Whether an option has no effect, because the option that it depends on is off. Setting it would only cause a
    warning.
    """
    if spec.declaration.needs is None:
        return False
    flag, wanted = spec.declaration.needs
    main = options[flag]
    return main.name in loaded.given and attrgetter(".".join(main.path))(loaded.config) != wanted


def command_line(given: Iterable[OptionTexts]) -> str:
    """Return the command line that sets these options, quoted for a shell."""
    import shlex

    return " ".join(["ophion", *(shlex.quote(_token(item)) for item in given)])


def _token(given: OptionTexts) -> str:
    text = ",".join(given.texts)
    return f"--{given.spec.name}={text}" if given.texts else f"--{given.spec.name}"
