"""The table of all commands."""

from __future__ import annotations

import importlib

from ophion.cli.command import Command, Family

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("dev", "Start a development node with everything switched on.", "ophion.cli.dev"),
        Family("bench", "Find the highest steady rate of a network.", "ophion.cli.bench"),
        Family("blocks", "Import and export chains of blocks.", "ophion.cli.blocks"),
        Family("doctor", "Ask the nodes of a network whether it can make blocks.", "ophion.cli.doctor"),
        Family("evm", "Run the public Ethereum test vectors.", "ophion.cli.evm"),
        Family("operator", "Prepare a new network: keys and genesis.", "ophion.cli.operator"),
        Family("password", "Hash passwords for the credentials file.", "ophion.cli.password"),
        Family("permissions", "Rules contracts: who may connect and transact on a network.", "ophion.cli.permissions"),
        Family("privacy", "Private transactions: keys of the enclave.", "ophion.cli.privacy"),
        Family("public-key", "Show the public key and the address of this node.", "ophion.cli.public_key"),
        Family("quickstart", "A network on this machine by one command, behind one address.", "ophion.cli.quickstart"),
        Family("rlp", "Encode and decode the extra data of BFT genesis blocks.", "ophion.cli.rlp"),
        Family("simulate", "Play consensus networks under faults, decided by a seed.", "ophion.cli.simulate"),
        Family("storage", "Look after the database: sizes, integrity, backups.", "ophion.cli.storage"),
        Family("validate-config", "Check a TOML configuration file.", "ophion.cli.validate_config"),
        Family("Xhelp", "Show the unstable options.", "ophion.cli.x_help", hidden=True),
    )
}


def commands_of(family: Family) -> dict[str, Command]:
    """The commands of a family by name; imports the family."""
    module = importlib.import_module(family.module)
    commands: tuple[Command, ...] = module.COMMANDS
    return {command.name: command for command in commands}
