"""Reads contract ABIs from files of solc, Hardhat and Foundry."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from ophion.abi.interface import EventType, Function
from ophion.errors import AbiError, CommandError

AbiEntry: TypeAlias = EventType | Function

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]{,199}", re.ASCII)


def load_abis(folder: Path, kinds: Collection[str] = ("event", "function")) -> list[AbiEntry]:
    """Read one file, or every `*.json` file below a folder. Equal entries are listed once."""
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.json"))
    if not folder.exists():
        raise CommandError(f"There is no file or directory {folder}. --abi names an ABI file, or a directory of them.")
    if not files:
        raise CommandError(f"There is no ABI file (*.json) in {folder}.")
    found: dict[tuple[str, tuple[bool, ...] | None], AbiEntry] = {}
    for file in files:
        try:
            for item in _items(json.loads(file.read_bytes())):
                entry = _entry(item, kinds)
                if entry is not None:
                    is_indexed = tuple(entry.is_indexed) if isinstance(entry, EventType) else None
                    found.setdefault((entry.signature, is_indexed), entry)
        except OSError as error:
            raise CommandError(f"Unable to read {file}: {error.strerror}") from error
        except (AbiError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CommandError(f"{file} is not an ABI: {error}") from error
    return list(found.values())


def _items(content: Any) -> Iterator[Any]:
    """Return the entries of an ABI, from the output of any supported compiler."""
    if isinstance(content, str):
        content = json.loads(content)
    if isinstance(content, list):
        yield from content
    elif isinstance(content, dict) and "abi" in content:
        yield from _items(content["abi"])
    elif isinstance(content, dict) and "contracts" in content:
        for one in content["contracts"].values():
            for contract in [one] if "abi" in one else one.values():
                yield from _items(contract["abi"])
    elif not isinstance(content, dict):
        raise ValueError("a list, or an object with the member 'abi', is expected")


def _entry(item: Any, kinds: Collection[str]) -> AbiEntry | None:
    if not isinstance(item, dict):
        raise ValueError(f"an entry is not an object: {item!r}")
    kind = item.get("type", "function")
    if kind not in kinds or item.get("anonymous"):
        return None
    # the name becomes part of a file path, so refuse names with other characters
    if not _IDENTIFIER.fullmatch(item["name"]):
        raise ValueError(f"{item['name']!r} is not a name")
    return (EventType if kind == "event" else Function)(item, has_raw_addresses=True)
