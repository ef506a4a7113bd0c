"""Translates a configuration file of Besu into a file of Ophion, with a report on each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from msgspec import Struct

from ophion.errors import ConfigError
from ophion.node.besu.option_table import OptionEffect, find_besu_option
from ophion.node.config import NodeConfig
from ophion.runtime.operator_files import NotRegularFile, table_of
from ophion.runtime.options import specs_of

_DATA_PATH: Final = "data-path"
_OWN_FILES: Final = frozenset(("node-private-key-file", "static-nodes-file"))
"""Options that name a file. Without the option, a file with a default name in the data path is used."""


class ConfigLine(Struct, frozen=True):
    """The translation of one key of a Besu configuration file, as a line of the report."""

    key: str
    outcome: str


class TranslatedConfig(Struct, frozen=True):
    """A configuration file translated to options of Ophion, with its report."""

    source: Path
    text: str
    lines: list[ConfigLine]
    by_hand: list[str]
    """Messages about keys for which the operator must decide what to do."""


def translate_config(file: Path, data_path: Path) -> TranslatedConfig:
    """Translate a file of Besu and keep the order of its keys. Raises `ConfigError` when the file cannot be read."""
    try:
        table = table_of(file)
    except (OSError, NotRegularFile, ValueError) as error:
        raise ConfigError(f"Unable to read the Besu configuration file {file}: {error}") from None
    own = {name for spec in specs_of(NodeConfig) for name in spec.names}
    result = TranslatedConfig(file, "", [], [])
    text: list[str] = []
    for key, value in table.items():
        text.append(_translate(key, value, own, data_path, result))
    return TranslatedConfig(file, "\n".join((*text, "")), result.lines, result.by_hand)


def _translate(key: str, value: object, own: set[str], data_path: Path, result: TranslatedConfig) -> str:
    """Translate one key. Returns its line for the new configuration file, and adds the key to the report."""
    row = find_besu_option(key)
    comment = f"# {json.dumps(key)[1:-1]} = {_toml(value)}"

    def report(outcome: str, line: str) -> str:
        result.lines.append(ConfigLine(key, outcome))
        return line

    if key == _DATA_PATH:
        return report(f"set to {data_path}", f"{_DATA_PATH} = {_toml(str(data_path))}")
    if row is None and key not in own:
        result.by_hand.append(f"{key} is neither an option of Besu nor of Ophion; it is commented out")
        return report("unknown, commented out", f"{comment}  # unknown")
    name = key if row is None or row.verdict is not OptionEffect.HONOURED else row.target
    if row is None or row.verdict is OptionEffect.HONOURED:
        if name in _OWN_FILES:
            result.by_hand.append(f"{key} names {value}: move that file into {data_path}, or keep the option")
        return report("kept" if name == key else f"renamed to {name}", f"{name} = {_toml(value)}")
    values = value if isinstance(value, list) else [value]
    if row.verdict is OptionEffect.REFUSED and not {str(item).lower() for item in values} <= row.accepted:
        result.by_hand.append(f"{key} is not supported: {row.reason}")
        return report(f"commented out, not supported: {row.reason}", f"{comment}  # not supported: {row.reason}")
    reason = row.reason if row.verdict is OptionEffect.IGNORED else "Ophion has this value anyway"
    return report(f"commented out, no effect: {reason}", f"{comment}  # no effect: {reason}")


def _toml(value: object) -> str:
    """Format a value as JSON, because JSON strings, numbers, booleans and lists are also valid TOML."""
    return json.dumps(value, default=str, ensure_ascii=False)
