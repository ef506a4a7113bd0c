"""The table of all commands."""

from __future__ import annotations

import importlib

from ophion.cli.command import Command, CommandFamily

FAMILIES: dict[str, CommandFamily] = {
    family.name: family
    for family in (
        CommandFamily("dev", "Start a development node with every service enabled.", "ophion.cli.dev"),
        CommandFamily("bench", "Find the highest transaction rate that a network sustains.", "ophion.cli.bench"),
        CommandFamily("blocks", "Import and export chains of blocks.", "ophion.cli.blocks"),
        CommandFamily(
            "doctor", "Check the nodes of a network and report whether it produces blocks.", "ophion.cli.doctor"
        ),
        CommandFamily("evm", "Run the public Ethereum test vectors.", "ophion.cli.evm"),
        CommandFamily("export", "Write the chain as tables: Parquet, Arrow, CSV, JSON lines.", "ophion.cli.export"),
        CommandFamily("keys", "Encrypt, decrypt and list private key files.", "ophion.cli.keys"),
        CommandFamily("migrate", "Move a chain of Besu, geth or GoQuorum to Ophion.", "ophion.cli.migrate"),
        CommandFamily("operator", "Prepare a new network: keys and genesis.", "ophion.cli.operator"),
        CommandFamily("password", "Hash passwords for the credentials file.", "ophion.cli.password"),
        CommandFamily(
            "permissions",
            "Permission contracts: accounts and nodes that are permitted on a network.",
            "ophion.cli.permissions",
        ),
        CommandFamily("privacy", "Private transactions: keys of the enclave.", "ophion.cli.privacy"),
        CommandFamily("proof", "Prove transactions to auditors, and verify such proofs.", "ophion.cli.proof"),
        CommandFamily("public-key", "Show the public key and the address of this node.", "ophion.cli.public_key"),
        CommandFamily("quickstart", "Run a network on this machine behind one address.", "ophion.cli.quickstart"),
        CommandFamily("rlp", "Encode and decode the extra data of BFT genesis blocks.", "ophion.cli.rlp"),
        CommandFamily("shell", "Open a Python console with a chain.", "ophion.cli.shell"),
        CommandFamily(
            "simulate", "Simulate consensus networks with faults, reproducible by seed.", "ophion.cli.simulate"
        ),
        CommandFamily("sql", "Query the chain with SQL (DuckDB).", "ophion.cli.sql"),
        CommandFamily("storage", "Database maintenance: size, integrity, backup, compaction.", "ophion.cli.storage"),
        CommandFamily("txparse", "Print the sender of raw transactions.", "ophion.cli.txparse", hidden=True),
        CommandFamily(
            "validate-config", "Check a TOML configuration file of Ophion or Besu.", "ophion.cli.validate_config"
        ),
        CommandFamily("Xhelp", "Show the unstable options of Besu.", "ophion.cli.x_help", hidden=True),
    )
}


def commands_of(family: CommandFamily) -> dict[str, Command]:
    """Import a family and return its commands by name."""
    module = importlib.import_module(family.module)
    commands: tuple[Command, ...] = module.COMMANDS
    return {command.name: command for command in commands}
