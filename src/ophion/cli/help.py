"""Formats the usage lines and help texts of commands."""

from __future__ import annotations

from ophion.cli.arguments import Basics
from ophion.cli.command import Command, CommandFamily
from ophion.cli.command_table import FAMILIES, commands_of
from ophion.runtime.options import OptionSpec, specs_of
from ophion.runtime.options.render import help_sections

_EXAMPLES = (
    "ophion dev",
    "ophion --genesis-file=genesis.json --data-path=data --rpc-http-enabled",
    "ophion blocks import --from=chain.rlp --genesis-file=genesis.json --data-path=data",
    "ophion operator generate-blockchain-config --config-file=network.json --to=network",
    "ophion public-key export --data-path=data",
    "ophion besu --config-file=config.toml --tx-pool=sequenced",
)


def usage(family: CommandFamily | None, command: Command | None) -> str:
    """Return the usage line of a command."""
    words = ["Usage: ophion"]
    if family is not None:
        words.append(family.name)
        if command is None:
            words.append("COMMAND")
        elif command.name != family.name:
            words.append(command.name)
    words.append("[OPTIONS]")
    if family is None:
        words.append("[COMMAND]")
    if command is not None and command.words:
        words.append(command.words)
    return " ".join(words)


def help_text(family: CommandFamily | None, command: Command | None, settings: type) -> str:
    """Return the help of the program, of a family or of a command."""
    import shutil  # lazy import: only the help text needs shutil

    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 110))
    if family is None:
        return _program_help(settings, width)
    if command is None:
        return _family_help(family)
    return _command_help(family, command, width)


def _program_help(settings: type, width: int) -> str:
    families = [(family.name, family.summary) for family in FAMILIES.values() if not family.hidden]
    options = help_sections((*specs_of(Basics), *specs_of(settings)), width)
    blocks = [
        usage(None, None),
        "An Ethereum node for private networks. Without a command it starts the node.",
        "Commands:\n" + _table(families),
        options,
        "Every option may also be set by a variable (--data-path is OPHION_DATA_PATH) or in the file of --config-file"
        '\n(data-path = "…"). A flag wins over a variable, a variable over the file.',
        "`ophion besu …` accepts a whole command line of Besu 1.0 to 26.x; `ophion validate-config --besu FILE` shows\n"
        "what becomes of each option.",
        _examples(_EXAMPLES),
    ]
    return "\n\n".join(blocks)


def _family_help(family: CommandFamily) -> str:
    commands = [(command.name, command.summary) for command in commands_of(family).values()]
    return "\n\n".join(
        [
            usage(family, None),
            family.summary,
            "Commands:\n" + _table(commands),
            f"`ophion {family.name} COMMAND --help` shows the help of one command.",
        ]
    )


def _command_help(family: CommandFamily, command: Command, width: int) -> str:
    blocks = [usage(family, command), command.summary]
    own: list[OptionSpec] = [*specs_of(command.options)]
    used = [spec for part in command.uses for spec in specs_of(part)]
    sections = help_sections((*own, *used), width)
    if sections:
        blocks.append(sections)
    blocks.append("Global options (`ophion --help`) may stand before or after the command.")
    if command.examples:
        blocks.append(_examples(command.examples))
    return "\n\n".join(blocks)


def _table(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {summary}" for name, summary in rows)


def _examples(examples: tuple[str, ...]) -> str:
    return "Examples:\n" + "\n".join(f"  {example}" for example in examples)
