"""The table of all commands."""

from __future__ import annotations

import importlib

from ophion.cli.command import Command, Family

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("dev", "Start a development node with every service enabled.", "ophion.cli.dev"),
        Family("bench", "Find the highest transaction rate that a network sustains.", "ophion.cli.bench"),
        Family("blocks", "Import and export chains of blocks.", "ophion.cli.blocks"),
        Family("doctor", "Check the nodes of a network and report whether it produces blocks.", "ophion.cli.doctor"),
        Family("evm", "Run the public Ethereum test vectors.", "ophion.cli.evm"),
        Family("export", "Write the chain as tables: Parquet, Arrow, CSV, JSON lines.", "ophion.cli.export"),
        Family("keys", "Encrypt, decrypt and list private key files.", "ophion.cli.keys"),
        Family("migrate", "Move a chain of Besu, geth or GoQuorum to Ophion.", "ophion.cli.migrate"),
        Family("operator", "Prepare a new network: keys and genesis.", "ophion.cli.operator"),
        Family("password", "Hash passwords for the credentials file.", "ophion.cli.password"),
        Family(
            "permissions",
            "Permission contracts: accounts and nodes that are permitted on a network.",
            "ophion.cli.permissions",
        ),
        Family("privacy", "Private transactions: keys of the enclave.", "ophion.cli.privacy"),
        Family("proof", "Prove transactions to auditors, and verify such proofs.", "ophion.cli.proof"),
        Family("public-key", "Show the public key and the address of this node.", "ophion.cli.public_key"),
        Family("quickstart", "Run a network on this machine behind one address.", "ophion.cli.quickstart"),
        Family("rlp", "Encode and decode the extra data of BFT genesis blocks.", "ophion.cli.rlp"),
        Family("shell", "Open a Python console with a chain.", "ophion.cli.shell"),
        Family("simulate", "Simulate consensus networks with faults, reproducible by seed.", "ophion.cli.simulate"),
        Family("sql", "Query the chain with SQL (DuckDB).", "ophion.cli.sql"),
        Family("storage", "Database maintenance: size, integrity, backup, compaction.", "ophion.cli.storage"),
        Family("txparse", "Print the sender of raw transactions.", "ophion.cli.txparse", hidden=True),
        Family("validate-config", "Check a TOML configuration file of Ophion or Besu.", "ophion.cli.validate_config"),
        Family("Xhelp", "Show the unstable options of Besu.", "ophion.cli.x_help", hidden=True),
    )
}


def commands_of(family: Family) -> dict[str, Command]:
    """Import a family and return its commands by name."""
    module = importlib.import_module(family.module)
    commands: tuple[Command, ...] = module.COMMANDS
    return {command.name: command for command in commands}
