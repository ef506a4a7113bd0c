"""Copies the small files of an old node: node key, static nodes, permission files, configuration.

An existing file in the new data directory is never overwritten. The old directory is only read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from ophion.errors import ConfigError, KeyFileError
from ophion.migration.config_translation import TranslatedConfig, translate_config
from ophion.node.node_key_file import load_key
from ophion.permissions.options import DEFAULT_FILE
from ophion.runtime.operator_files import content_of, write_whole

_STATIC_NODES: Final = "static-nodes.json"
_SECRET: Final = 0o600
_PLAIN: Final = 0o644


class OldLayout(Struct, frozen=True):
    """Paths of a client's files below its data directory. If a field has several paths, the first existing file is
    used.
    """

    keys: tuple[str, ...]
    static_nodes: tuple[str, ...]
    allowed_nodes: tuple[str, ...] = ()
    """JSON lists of enode URLs from which an allow list is made (GoQuorum)."""
    copied: tuple[str, ...] = ()
    by_hand: tuple[tuple[str, str], ...] = ()
    """Files or directories that the migration does not copy, each with an instruction for the operator."""


BESU_LAYOUT: Final = OldLayout(
    keys=("key",),
    static_nodes=(_STATIC_NODES,),
    copied=(DEFAULT_FILE,),
    by_hand=(
        ("plugins", "plugins of Besu are not loaded"),
        ("uploads", "not needed: files of Besu's HTTP service"),
    ),
)
GETH_LAYOUT: Final = OldLayout(
    keys=("geth/nodekey", "nodekey"),
    static_nodes=(_STATIC_NODES, f"geth/{_STATIC_NODES}"),
    allowed_nodes=("permissioned-nodes.json",),
    by_hand=(
        ("keystore", "accounts stay in a wallet; a Clique signer's key becomes the node key (`key`), decrypted"),
        ("disallowed-nodes.json", "remove these nodes from nodes-allowlist"),
        ("permission-config.json", "deploy Ophion's permission contracts: docs/permissions.md"),
        ("quorum-raft-state", "Raft networks cannot be continued with their consensus"),
    ),
)


class TakenFile(Struct, frozen=True):
    """One copied or skipped file, as a line of the report."""

    name: str
    outcome: str


class Takeover(Struct, frozen=True):
    """Result of a takeover: the copied files, the steps for the operator, and the translated configuration."""

    files: list[TakenFile]
    by_hand: list[str]
    config: TranslatedConfig | None


def take_over(source: Path, layout: OldLayout, target: Path, config_file: Path | None) -> Takeover:
    """Copy and translate the files of an old data directory into the new data directory."""
    try:
        result = Takeover([], [], _config(source, target, config_file))
    except ConfigError as error:
        if config_file is not None:
            raise
        outcome = f"not taken over: {error}"
        result = Takeover([TakenFile("config.toml", outcome)], [f"config.toml: {outcome}"], None)
    _take(result, source, layout.keys, target / "key", _SECRET, lambda file: f"0x{load_key(file).secret().hex()}")
    _take(result, source, layout.static_nodes, target / _STATIC_NODES, _PLAIN, _static_nodes)
    _take(result, source, layout.allowed_nodes, target / DEFAULT_FILE, _PLAIN, _allow_list)
    for name in layout.copied:
        _take(result, source, (name,), target / name, _PLAIN, lambda file: content_of(file).decode())
    result.by_hand.extend(f"{name}: {advice}" for name, advice in layout.by_hand if (source / name).exists())
    result.by_hand.extend(_remaining(target, result.config))
    return result


def _take(
    result: Takeover,
    source: Path,
    names: tuple[str, ...],
    target: Path,
    mode: int,
    read: Callable[[Path], str],
) -> None:
    name = next((name for name in names if (source / name).is_file()), None)
    if name is None:
        return
    try:
        text = read(source / name)
        if target.exists():
            is_same = content_of(target).decode().strip() == text.strip()
            outcome = "taken over already" if is_same else f"not taken over: {target} exists and differs"
        else:
            write_whole(target, text, mode)
            outcome = f"taken over as {target}"
    except OSError as error:
        outcome = f"not taken over: {error.strerror}"
    except (KeyFileError, ValueError) as error:
        outcome = f"not taken over: {error}"
    result.files.append(TakenFile(name, outcome))
    if outcome.startswith("not"):
        result.by_hand.append(f"{name}: {outcome}")


def _config(source: Path, target: Path, file: Path | None) -> TranslatedConfig | None:
    if file is None:
        file = source / "config.toml"
        if not file.is_file():
            return None
    translated = translate_config(file, target)
    copy = target / "config.toml"
    if not copy.exists():
        write_whole(copy, translated.text)
    return translated


def _enodes(file: Path) -> list[str]:
    found = json.loads(content_of(file))
    if not isinstance(found, list) or not all(isinstance(url, str) for url in found):
        raise ValueError("not a JSON list of enode URLs")
    return [_without_raft_port(url) for url in found]


def _without_raft_port(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(
        parts._replace(query=urlencode([pair for pair in parse_qsl(parts.query) if pair[0] == "discport"]))
    )


def _static_nodes(file: Path) -> str:
    return json.dumps(_enodes(file), indent=2) + "\n"


def _allow_list(file: Path) -> str:
    return f"nodes-allowlist = {json.dumps(_enodes(file))}\n"


def _remaining(target: Path, config: TranslatedConfig | None) -> Iterator[str]:
    if not (target / "key").exists():
        yield f"node key: copy the key of the old node to {target / 'key'}, or its address and enode URL change"
    else:
        yield "never run the old and the new node at the same time with one key: stop the old one first"
    if config is None:
        yield "options: pass those of the old node, or translate its file with --from-config=FILE"
    else:
        yield from (f"config.toml: {line}" for line in config.by_hand)
    yield "compare: run both nodes with different keys and compare their answers with `ophion migrate --compare`"
