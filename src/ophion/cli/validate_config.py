"""`ophion validate-config`: read a configuration file as the node would, and stop there."""

from __future__ import annotations

from ophion.cli.command import Command, Nothing, Session
from ophion.errors import ConfigError


def validate(options: Nothing, session: Session) -> int:
    """The file has been read by the time a command runs; what was wrong with it has been said."""
    if session.config_file is None:
        raise ConfigError("Missing required option: '--config-file=FILE'")
    print(
        "TOML config file is valid on basic inspection. Further dependencies between related options are checked when"
        " Ophion starts."
    )
    return 0


COMMANDS = (
    Command(
        "validate-config",
        "Check the keys and values of a TOML configuration file.",
        validate,
        examples=("ophion validate-config --config-file=config.toml",),
    ),
)
