"""Sources of option values: the command line, the environment, a TOML file.

All three produce `Given`: texts for an option, with a label for messages. They become typed values later and in one
place, so an option behaves the same in every source.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ophion.errors import ConfigError
from ophion.runtime.operator_files import NotRegularFile, table_of
from ophion.runtime.options.declare import OptionSpec

PREFIXES = ("OPHION_", "PANTHEON_", "BESU_")
"""Prefixes of environment variables; the later two serve existing Pantheon and Besu set-ups."""


class Source(enum.Enum):
    """Source of a value; an earlier member overrides a later one."""

    FLAG = 0
    ENVIRONMENT = 1
    FILE = 2


class Given(Struct, frozen=True):
    """Texts that a source gives for an option."""

    spec: OptionSpec
    texts: tuple[str, ...]
    source: Source
    label: str

    def value(self) -> Any:
        """Return the typed value; raises `ValueError` with a whole sentence."""
        try:
            return self.spec.kind.value(self.texts, self.spec.declaration.check)
        except ValueError as error:
            raise ValueError(f"Invalid value for {self.label}: {error}") from None


def read_flag(token: str, rest: deque[str], options: Mapping[str, OptionSpec], words: Iterable[str] = ()) -> Given:
    """Read the flag in `token`, taking its value from `rest` where it is a separate argument.

    `options` is keyed by flag. `words` are command names that may follow: an option that may stand alone does not take
    one as its value. Raises `ConfigError` for an unknown flag or a missing value.
    """
    flag, attached = _split(token, options)
    spec = options.get(flag)
    if spec is None:
        if rest and "=" not in token and not rest[0].startswith("-") and rest[0] not in words:
            rest.popleft()  # the next argument is the value of the unknown option, not a command: report one mistake
        raise ConfigError(unknown_flag(flag, options))
    label = f"option '{flag}'"
    if attached is not None:
        return Given(spec, _texts(spec, attached), Source.FLAG, label)
    if spec.kind.is_bool:
        text = rest.popleft() if rest and rest[0].lower() in ("true", "false") else "true"
        return Given(spec, (text,), Source.FLAG, label)
    if rest and not rest[0].startswith("--") and not (spec.takes_bare and rest[0] in words):
        return Given(spec, _texts(spec, rest.popleft()), Source.FLAG, label)
    if spec.takes_bare:
        return Given(spec, (), Source.FLAG, label)
    raise ConfigError(f"Missing required parameter for option '{flag}' ({spec.metavar})")


def _split(token: str, options: Mapping[str, OptionSpec]) -> tuple[str, str | None]:
    """Split `--name=value`, `-l=value` and `-lvalue` into flag and value."""
    if "=" in token:
        flag, _, value = token.partition("=")
        return flag, value
    if not token.startswith("--") and token not in options and token[:2] in options:
        return token[:2], token[2:]
    return token, None


def _texts(spec: OptionSpec, text: str) -> tuple[str, ...]:
    if not spec.kind.is_list:
        return (text,)
    return tuple(part.strip() for part in text.split(",")) if text else ()


def unknown_flag(flag: str, options: Mapping[str, OptionSpec]) -> str:
    """Return the message for an unknown flag, with similar names."""
    import difflib  # imported late: only mistakes need it

    visible = [name for name, spec in options.items() if not spec.declaration.hidden]
    close = difflib.get_close_matches(flag, visible, n=3, cutoff=0.75)
    hint = f" (did you mean {' or '.join(close)}?)" if close else ""
    return f"Unknown option: '{flag}'{hint}"


def read_environment(environ: Mapping[str, str], specs: Iterable[OptionSpec]) -> list[Given]:
    """Read variables such as OPHION_RPC_HTTP_PORT. An empty variable counts as not set, but empties a list."""
    found: list[Given] = []
    if not any(name.startswith(PREFIXES) for name in environ):
        return found
    for spec in specs:
        variables = [variable(prefix, name) for prefix in PREFIXES for name in spec.names]
        for name in variables:
            text = environ.get(name)
            if text is not None and (text or spec.kind.is_list):
                found.append(Given(spec, _texts(spec, text), Source.ENVIRONMENT, f"environment variable '{name}'"))
                break
    return found


def misspelt_variables(environ: Mapping[str, str], specs: Iterable[OptionSpec]) -> list[str]:
    """Return warnings about variables with our prefix that set nothing."""
    names = [name for name in environ if name.startswith(PREFIXES[0])]
    if not names:
        return []
    import difflib  # imported late: only mistakes need it

    known = {variable(PREFIXES[0], name) for spec in specs for name in spec.names}
    found = []
    for name in sorted(set(names) - known):
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if close:
            found.append(f"Environment variable {name} has no effect (did you mean {close[0]}?)")
    return found


def variable(prefix: str, name: str) -> str:
    """Return the environment variable of an option name."""
    return prefix + name.upper().replace("-", "_")


def read_file(path: Path, specs: Iterable[OptionSpec]) -> list[Given]:
    """Read values from a TOML file whose keys are option names. Raises `ConfigError` with all problems of the file."""
    table = _table(path)
    by_name = {name: spec for spec in specs for name in spec.names}
    unknown = [key for key in table if key not in by_name]
    problems = []
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        problems.append(f"Unknown option{plural} in TOML configuration file: {', '.join(unknown)}")
    found: dict[str, Given] = {}
    for key, value in table.items():
        spec = by_name.get(key)
        if spec is None:
            continue
        label = f"'{key}' in TOML configuration file"
        if spec.name in found:
            problems.append(f"{found[spec.name].label} is given again as '{key}'")
            continue
        try:
            found[spec.name] = Given(spec, _toml_texts(spec, value), Source.FILE, label)
        except ValueError as error:
            problems.append(f"Invalid value for {label}: {error}")
    if problems:
        raise ConfigError(problems)
    return list(found.values())


def _table(path: Path) -> dict[str, Any]:
    try:
        table = table_of(path)
    except FileNotFoundError:
        raise ConfigError("Unable to read TOML configuration, file not found.") from None
    except OSError as error:
        raise ConfigError(f"Unable to read TOML configuration file {path}: {error.strerror}") from None
    except NotRegularFile as error:
        raise ConfigError(f"Unable to read TOML configuration file {path}: {error}") from None
    except ValueError as error:
        raise ConfigError(f"Invalid TOML configuration: {error}") from None
    if not table:
        raise ConfigError(f"Unable to read TOML configuration file {path}")
    return table


def _toml_texts(spec: OptionSpec, value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        if not spec.kind.is_list:
            raise ValueError("expected a single value, not a list")
        return tuple(_toml_text(item) for item in value)
    text = _toml_text(value)
    return _texts(spec, text)


def _toml_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError("expected text, a number, a boolean or a list of these")
