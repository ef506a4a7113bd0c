"""Reads values from the command line, the environment and a TOML file.

Each source returns `OptionTexts`: the texts of an option, with a label for messages. One function converts all texts to
typed values later, so an option behaves the same in every source.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ophion.errors import ConfigError
from ophion.runtime.operator_files import NotRegularFile, table_of
from ophion.runtime.options.declare import OptionSpec

PREFIXES = ("OPHION_", "PANTHEON_", "BESU_")
"""Prefixes of environment variables. The prefixes of Pantheon and Besu let existing deployments run unchanged."""


ForeignKey = Callable[[str, tuple[str, ...], str], bool]


class OptionSource(enum.Enum):
    """Source of a value. A source overrides the sources after it in this enum."""

    FLAG = 0
    ENVIRONMENT = 1
    FILE = 2
    PROFILE = 3


class OptionTexts(Struct, frozen=True):
    """The texts that one source gives for an option."""

    spec: OptionSpec
    texts: tuple[str, ...]
    source: OptionSource
    label: str

    @property
    def is_default_of_image(self) -> bool:
        """Whether the value comes from a variable with the prefix of Besu or Pantheon. Their container images set the
        hosts of all services, even of disabled services.
        """
        return self.source is OptionSource.ENVIRONMENT and f"'{PREFIXES[0]}" not in self.label

    def value(self) -> Any:
        """Return the typed value. A `ValueError` names the option and the source."""
        try:
            return self.spec.kind.value(self.texts, self.spec.declaration.check)
        except ValueError as error:
            raise ValueError(f"Invalid value for {self.label}: {error}") from None


def read_flag(
    token: str, rest: deque[str], options: Mapping[str, OptionSpec], words: Iterable[str] = ()
) -> OptionTexts:
    """Read the flag in `token` and its value. The value may follow in `rest`, and is then removed from `rest`.

    `options` is keyed by flag. `words` are command names: a command name after an option with an optional value is not
    the value. Raises `ConfigError` for an unknown flag or a missing value.
    """
    flag, attached = _split(token, options)
    spec = options.get(flag)
    if spec is None:
        if rest and "=" not in token and not rest[0].startswith("-") and rest[0] not in words:
            rest.popleft()  # also drop the value of the unknown option, so that one mistake gives one error message
        raise ConfigError(unknown_flag(flag, options))
    label = f"option '{flag}'"
    if attached is not None:
        return OptionTexts(spec, split_text(spec, attached), OptionSource.FLAG, label)
    if spec.kind.is_bool:
        text = rest.popleft() if rest and rest[0].lower() in ("true", "false") else "true"
        return OptionTexts(spec, (text,), OptionSource.FLAG, label)
    starts_option = rest and rest[0].startswith("-" if spec.takes_bare else "--")
    if rest and not starts_option and not (spec.takes_bare and rest[0] in words):
        return OptionTexts(spec, split_text(spec, rest.popleft()), OptionSource.FLAG, label)
    if spec.takes_bare:
        return OptionTexts(spec, (), OptionSource.FLAG, label)
    raise ConfigError(f"Missing required parameter for option '{flag}' ({spec.metavar})")


def _split(token: str, options: Mapping[str, OptionSpec]) -> tuple[str, str | None]:
    """Split `--name=value`, `-l=value` and `-lvalue` into flag and value. The value is None for a flag alone."""
    if "=" in token:
        flag, _, value = token.partition("=")
        return flag, value
    if not token.startswith("--") and token not in options and token[:2] in options:
        return token[:2], token[2:]
    return token, None


def split_text(spec: OptionSpec, text: str) -> tuple[str, ...]:
    """Return the values in a text: split at commas for a list, else the text itself."""
    if not spec.kind.is_list:
        return (text,)
    return tuple(part.strip() for part in text.split(",")) if text else ()


def unknown_flag(flag: str, options: Mapping[str, OptionSpec]) -> str:
    """Return the message for an unknown flag; it suggests similar flags."""
    import difflib  # lazy import: only error messages need difflib

    visible = [name for name, spec in options.items() if not spec.declaration.hidden]
    close = difflib.get_close_matches(flag, visible, n=3, cutoff=0.75)
    hint = f" (did you mean {' or '.join(close)}?)" if close else ""
    return f"Unknown option: '{flag}'{hint}"


def read_environment(environ: Mapping[str, str], specs: Iterable[OptionSpec]) -> list[OptionTexts]:
    """Read variables such as OPHION_RPC_HTTP_PORT. An empty variable means an empty list; options of other types ignore
    it.
    """
    found: list[OptionTexts] = []
    if not any(name.startswith(PREFIXES) for name in environ):
        return found
    for spec in specs:
        variables = [variable(prefix, name) for prefix in PREFIXES for name in spec.names]
        for name in variables:
            text = environ.get(name)
            if text is not None and (text or spec.kind.is_list):
                found.append(
                    OptionTexts(
                        spec, split_text(spec, text), OptionSource.ENVIRONMENT, f"environment variable '{name}'"
                    )
                )
                break
    return found


def misspelt_variables(environ: Mapping[str, str], specs: Iterable[OptionSpec]) -> list[str]:
    """Return warnings about variables with nearly the name of an option."""
    names = [name for name in environ if name.startswith(PREFIXES[0])]
    if not names:
        return []
    import difflib  # lazy import: only error messages need difflib

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


def read_file(
    path: Path, specs: Iterable[OptionSpec], foreign: ForeignKey | None = None, warnings: list[str] | None = None
) -> list[OptionTexts]:
    """Read a TOML file whose keys are option names. A `ConfigError` lists all problems of the file.

    `foreign` is called with the name, texts and label of a key that is no option. It returns whether it accepts the
    key. `warnings` gets a text when two spellings of one option have different values. Without `warnings`, different
    values are a problem of the file.
    """
    table = _table(path)
    by_name = {name: spec for spec in specs for name in spec.names}
    problems = []
    unknown = []
    for key in table:
        if key in by_name or (foreign is not None and foreign(key, *_foreign_texts(key, table[key]))):
            continue
        unknown.append(key)
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        problems.append(f"Unknown option{plural} in TOML configuration file: {', '.join(unknown)}")
    found: dict[str, OptionTexts] = {}
    for key, value in table.items():
        spec = by_name.get(key)
        if spec is None:
            continue
        label = f"'{key}' in TOML configuration file"
        try:
            new = OptionTexts(spec, _toml_texts(spec, value), OptionSource.FILE, label)
        except ValueError as error:
            problems.append(f"Invalid value for {label}: {error}")
            continue
        old = found.setdefault(spec.name, new)
        if old.texts != new.texts:
            text = f"{old.label} is given again as '{key}' with another value"
            if warnings is None:
                problems.append(text)
            else:
                warnings.append(f"{text}; the first one counts.")
    if problems:
        raise ConfigError(problems)
    return list(found.values())


def _foreign_texts(key: str, value: Any) -> tuple[tuple[str, ...], str]:
    values = value if isinstance(value, list) else [value]
    texts = tuple(_toml_text(item) for item in values if isinstance(item, str | int | float))
    return texts, f"'{key}' in TOML configuration file"


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
    return split_text(spec, text)


def _toml_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError("expected text, a number, a boolean or a list of these")
