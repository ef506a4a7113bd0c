"""Log settings of a Log4j 2 file, which `LOG4J_CONFIGURATION_FILE` names for Besu.

The reader supports the level of the root logger, JSON output, and a log file with or without the console. File and
console have one format. One warning names all other settings. Options and variables for logging take precedence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from msgspec import Struct

from ophion.runtime.logs import LogLevel
from ophion.runtime.operator_files import content_of
from ophion.runtime.options import OptionSource, OptionSpec, OptionTexts

VARIABLE: Final = "LOG4J_CONFIGURATION_FILE"
_MAX_FILE_BYTES: Final = 1 << 20
_MAX_SUBSTITUTIONS: Final = 10
_LOOKUP: Final = re.compile(r"\$\{([^${}]*)\}")
_CONSOLES: Final = frozenset({"console"})
_FILES: Final = frozenset({"file", "rollingfile", "randomaccessfile", "rollingrandomaccessfile"})
_JSON_LAYOUTS: Final = frozenset({"jsonlayout", "jsontemplatelayout"})
_SIZE: Final = re.compile(r"\s*(\d+)\s*(KB|MB|GB)?\s*", re.IGNORECASE)
_UNITS_KB: Final = {"KB": 1, "MB": 1024, "GB": 1024 * 1024}


class LogSettings(Struct, frozen=True):
    """Options of Ophion with their values, and the Log4j settings without an equivalent."""

    options: Mapping[str, str]
    ignored: tuple[str, ...] = ()


def read_log4j(environ: Mapping[str, str], specs: Iterable[OptionSpec]) -> tuple[list[OptionTexts], list[str]]:
    """Return the settings of the file that the variable names, and at most one warning."""
    name = environ.get(VARIABLE)
    if not name:
        return [], []
    label = f"environment variable '{VARIABLE}'"
    try:
        settings = parse_log4j(content_of(Path(name), _MAX_FILE_BYTES), environ)
    except (OSError, ValueError, ElementTree.ParseError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return [], [f"{name} of {label} is not used: {reason}."]
    known = {one: spec for spec in specs for one in spec.names}
    chosen = ((known[key], text) for key, text in settings.options.items() if key in known)
    given = [OptionTexts(spec, (text,), OptionSource.PROFILE, label) for spec, text in chosen]
    if not settings.ignored:
        return given, []
    return given, [f"Settings of {name} have no effect: {', '.join(settings.ignored)}. Use --logging-config-file."]


def parse_log4j(content: bytes, environ: Mapping[str, str]) -> LogSettings:
    """Read a Log4j 2 XML file. Raises `ValueError` or `ParseError` if the file cannot be read."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ValueError("document types are not accepted")
    if not content.lstrip().startswith(b"<"):
        raise ValueError("only the XML form of Log4j files is understood")
    root = ElementTree.fromstring(content)
    reader = _Reader(root, environ)
    return LogSettings(dict(reader.options()), tuple(reader.ignored))


class _Reader:
    """Collects the log settings of one Log4j 2 file."""

    def __init__(self, root: Element, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._properties = {
            one.get("name", ""): (one.text or one.get("value") or "").strip() for one in _all(root, "property")
        }
        self._appenders = {
            self._attribute(one, "name"): one for group in _all(root, "appenders") for one in group if _kind(one)
        }
        self._root = next(_all(root, "root"), None)
        self.ignored: list[str] = [
            f"logger {self._attribute(one, 'name')}"
            for one in root.iter()
            if _kind(one) in ("logger", "asynclogger") and one.get("name")
        ]

    def options(self) -> Iterator[tuple[str, str]]:
        if self._root is None:
            return
        level = LogLevel.named(self._attribute(self._root, "level"))
        if level is not None:
            yield "logging", level.name
        used = [self._appenders.get(self._attribute(one, "ref")) for one in _all(self._root, "appenderref")]
        appenders = [one for one in used if one is not None]
        console = next((one for one in appenders if _kind(one) in _CONSOLES), None)
        file = next((one for one in appenders if _kind(one) in _FILES), None)
        for one in appenders:
            if one is not console and one is not file:
                self.ignored.append(f"appender {self._attribute(one, 'name')}")
        chosen = file if console is None else console
        if chosen is not None and self._is_json(chosen):
            yield "logging-format", "JSON"
        if file is not None and self._attribute(file, "fileName"):
            yield "logging-file", self._attribute(file, "fileName")
            if console is not None:
                yield "logging-console", "true"
            yield from self._rotation(file)

    def _rotation(self, file: Element) -> Iterator[tuple[str, str]]:
        for policy in _all(file, "sizebasedtriggeringpolicy"):
            match = _SIZE.fullmatch(self._attribute(policy, "size"))
            if match is not None:
                unit = (match[2] or "").upper()
                size_kb = int(match[1]) * _UNITS_KB[unit] if unit else int(match[1]) // 1024
                yield "logging-file-max-size", str(max(size_kb // 1024, 1))
        for strategy in _all(file, "defaultrolloverstrategy"):
            if self._attribute(strategy, "max").isdecimal():
                yield "logging-files-kept", self._attribute(strategy, "max")

    def _is_json(self, appender: Element) -> bool:
        layouts = [one for one in appender.iter() if _kind(one).endswith("layout")]
        return any(
            _kind(one) in _JSON_LAYOUTS or self._attribute(one, "pattern").lstrip().startswith("{") for one in layouts
        )

    def _attribute(self, element: Element, name: str) -> str:
        found = next((text for key, text in element.attrib.items() if key.lower() == name.lower()), "")
        for _ in range(_MAX_SUBSTITUTIONS):
            replaced = _LOOKUP.sub(self._value, found)
            if replaced == found:
                break
            found = replaced
        return found

    def _value(self, match: re.Match[str]) -> str:
        """Return the value of `${name}`, `${env:NAME}` or `${sys:name}`. A reference may have a default after `:-`."""
        key, _, default = match[1].partition(":-")
        kind, _, name = key.rpartition(":")
        if kind == "env":
            return self._environ.get(name, default)
        if name.lower() == "hostname":
            return self._environ.get("HOSTNAME") or os.uname().nodename
        return self._properties.get(name, default)


def _kind(element: Element) -> str:
    return element.tag.rpartition("}")[2].lower()


def _all(root: Element, kind: str) -> Iterator[Element]:
    return (one for one in root.iter() if _kind(one) == kind)
