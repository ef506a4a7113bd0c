"""Splits argv into a command, its options and the global options.

Global options may stand before or after the command. After the command, the command's own options take precedence:
`--config-file` of `operator generate-blockchain-config` belongs to the command, not to the node.
"""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from ophion.cli.command import Command, CommandFamily
from ophion.cli.command_table import FAMILIES, commands_of
from ophion.errors import ConfigError
from ophion.runtime.options import Options, OptionSource, OptionSpec, OptionTexts, option, read_flag, specs_of

if TYPE_CHECKING:
    from ophion.node.besu.settings import BesuSetting


class Basics(Options):
    """General: help, version and configuration file of every command."""

    help: bool = option(
        "--help", "-h", default=False, metavar="", help="Show this help, or the help of the command, and exit."
    )
    version: bool = option("--version", "-V", default=False, metavar="", help="Show the version and exit.")
    config_file: Path | None = option(
        "--config-file",
        default=None,
        help="TOML file with options; its keys are option names without dashes.",
    )


_WORDS_AS_FLAGS: Final = {"-X": "Xhelp", "--Xhelp": "Xhelp"}
"""Commands that may also be written as flags, as in Pantheon 1.2."""


class Arguments(Struct):
    """The split command line. Values are still text."""

    family: CommandFamily | None = None
    command: Command | None = None
    basics: list[OptionTexts] = field(default_factory=list)
    settings: list[OptionTexts] = field(default_factory=list)
    own: list[OptionTexts] = field(default_factory=list)
    besu: list[BesuSetting] = field(default_factory=list)
    """Options that Besu has and Ophion does not, with their values."""
    words: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def asks(self, name: str) -> bool:
        """Whether a global option such as --help was given, with a value other than `false`."""
        return any(given.spec.name == name and given.texts != ("false",) for given in self.basics)


def by_flag(cls: type) -> dict[str, OptionSpec]:
    """Return the options of a configuration class, keyed by every flag."""
    return {flag: spec for spec in specs_of(cls) for flag in spec.declaration.flags}


class _Reader:
    """Reads argv once, from left to right."""

    def __init__(self, settings: type) -> None:
        self.result = Arguments()
        self._own: dict[str, OptionSpec] = {}
        self._tables = (
            (self._own, self.result.own),
            (by_flag(Basics), self.result.basics),
            (by_flag(settings), self.result.settings),
        )
        self._siblings: Mapping[str, CommandFamily | Command] = FAMILIES
        self._has_unknown_word = False

    def read(self, argv: Sequence[str]) -> Arguments:
        rest = deque(argv)
        while rest:
            token = rest.popleft()
            if token == "--":
                self._words(rest)
                break
            if token in _WORDS_AS_FLAGS:
                self._words([_WORDS_AS_FLAGS[token]])
            elif token.startswith("-") and token != "-":
                self._flag(token, rest)
            else:
                self._words([token])
        return self.result

    def _flag(self, token: str, rest: deque[str]) -> None:
        options: ChainMap[str, OptionSpec] = ChainMap(*(table for table, _ in self._tables))
        if token.startswith("--") and token.partition("=")[0] not in options and self._besu_flag(token, rest):
            return
        try:
            given = read_flag(token, rest, options, self._siblings)
        except ConfigError as error:
            self.result.problems.extend(error.problems)
            return
        for table, found in self._tables:
            if any(spec is given.spec for spec in table.values()):
                found.append(given)
                return

    def _besu_flag(self, token: str, rest: deque[str]) -> bool:
        """Read an option that only Besu has, with its value. Returns False if Besu does not have the option either."""
        from ophion.node.besu.settings import read_besu_setting  # lazy import: only options of Besu need this module

        flag, has_value, text = token.partition("=")
        setting = read_besu_setting(flag[2:], (text,) if has_value else (), OptionSource.FLAG, f"option '{flag}'")
        if setting is None:
            return False
        follows = rest[0] if rest and not has_value and rest[0] not in self._siblings else "-"
        if follows.lower() in ("true", "false") or not (setting.option.is_switch or follows.startswith("-")):
            setting = replace(setting, texts=(rest.popleft(),))
        self.result.besu.append(setting)
        return True

    def _words(self, words: Iterable[str]) -> None:
        for word in words:
            if word in self._siblings and not self.result.own:
                self._enter(self._siblings[word])
            elif self.result.command is not None and self.result.command.words is not None:
                self.result.words.append(word)
            elif self.result.command is not None:
                self.result.problems.append(f"Unmatched argument: '{word}'")
            elif not self._has_unknown_word:
                # report only the first unknown word, because later words may be its arguments
                self._has_unknown_word = True
                self.result.problems.append(_unknown(word, self._siblings))

    def _enter(self, chosen: CommandFamily | Command) -> None:
        if isinstance(chosen, CommandFamily):
            self.result.family = chosen
            self._siblings = commands_of(chosen)
            commands = self._siblings
            own = commands.get(chosen.name)
            if isinstance(own, Command):
                self._enter(own)
                # the next word may still choose another command of the family
                self._siblings = {name: command for name, command in commands.items() if command is not own}
        else:
            self.result.command = chosen
            self._siblings = {}
            self._own.clear()
            self._own.update(by_flag(chosen.options))


def _unknown(word: str, known: Iterable[str]) -> str:
    import difflib  # lazy import: only error messages need difflib

    close = difflib.get_close_matches(word, list(known), n=2)
    hint = f" (did you mean {' or '.join(close)}?)" if close else ""
    return f"Unknown command: '{word}'{hint}"


def read_arguments(argv: Sequence[str], settings: type) -> Arguments:
    """Split argv into the command, its own options and the global options. Unknown words and flags are returned as
    problems.
    """
    return _Reader(settings).read(argv)
