"""`ophion permissions`: permission contracts in a genesis file and on a running network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from ophion.cli.command import Command, CommandSession
from ophion.cli.input_output import parse_json, read_input, write_output
from ophion.cli.node_client import NodeOptions, RpcNode, UnknownMethod
from ophion.cli.permission_contracts import RulesContracts, account_call
from ophion.cli.untrusted_text import escape_untrusted
from ophion.errors import CommandError
from ophion.node.node_key_file import load_key
from ophion.permissions.contract_genesis import (
    ACCOUNT_INGRESS,
    NODE_INGRESS,
    account_contracts,
    node_contracts,
)
from ophion.permissions.list_requests import read_account, read_node
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address
from ophion.runtime.options import Options, at_least, between, option, read_address


class GenesisOptions(Options):
    """Options: administrators, files and first entries of `ophion permissions genesis`."""

    admins: tuple[Address, ...] = option(
        "--admin", parse=read_address, metavar="ADDRESS", help="Accounts that may change the rules, with commas."
    )
    source: Path | None = option("--from", default=None, help="Genesis file to read. (default: standard input)")
    target: Path | None = option(
        "--to", default=None, help="Genesis file to write, which may be the same. (default: standard output)"
    )
    accounts: bool = option("--accounts", default=False, help="Create account rules. Without it and --nodes: both.")
    nodes: bool = option("--nodes", default=False, help="Create node rules.")
    nodes_version: int = option(
        "--nodes-contract-version",
        default=1,
        check=between(1, 2),
        help="Interface of the node rules: 1 encodes nodes as numbers, 2 as text (id, host, port).",
    )
    permitted_accounts: tuple[Address, ...] = option(
        "--permitted-accounts",
        default=(),
        parse=read_address,
        metavar="ADDRESS",
        help="Accounts that may send transactions from the start, in addition to administrators.",
    )
    permitted_nodes: tuple[Enode, ...] = option(
        "--permitted-nodes",
        default=(),
        parse=read_node,
        metavar="ENODE",
        help="Nodes that may connect from the start; without any, an administrator must add nodes first.",
    )


class NetworkOptions(NodeOptions):
    """Options: addresses of the permission contracts for `ophion permissions`."""

    accounts_contract: Address = option(
        "--accounts-contract",
        default=ACCOUNT_INGRESS,
        parse=read_address,
        metavar="ADDRESS",
        help="Ingress for accounts.",
    )
    nodes_contract: Address = option(
        "--nodes-contract",
        default=NODE_INGRESS,
        parse=read_address,
        metavar="ADDRESS",
        help="Ingress for nodes.",
    )


class ChangeOptions(NetworkOptions):
    """Options: key file and checks of `ophion permissions` commands that send transactions."""

    key_file: Path | None = option(
        "--key-file", default=None, help="Private key of an administrator, who pays the gas."
    )
    wait_s: int = option(
        "--wait", default=60, check=at_least(1), metavar="SECONDS", help="Seconds to wait for the block of a change."
    )
    is_dry: bool = option(
        "--dry-run", default=False, help="Dry run: print the change and its consequences without making it."
    )
    is_forced: bool = option(
        "--force", default=False, help="Make a change even if too few validators for a quorum stay connected."
    )


def genesis(options: GenesisOptions, session: CommandSession) -> int:
    """Add the contracts to the accounts of a genesis file."""
    text = read_input(options.source, "Unable to read the genesis file.")
    document = parse_json(text, "The genesis file is not valid JSON:")
    alloc = document.setdefault("alloc", {}) if isinstance(document, dict) else None
    if not isinstance(alloc, dict):
        raise CommandError("The genesis file must be an object whose alloc is an object.")
    has_both = not options.accounts and not options.nodes
    contracts: dict[Address, dict[str, Any]] = {}
    if options.accounts or has_both:
        contracts |= account_contracts(options.admins, options.permitted_accounts)
    if options.nodes or has_both:
        contracts |= node_contracts(options.admins, options.permitted_nodes, options.nodes_version)
    taken = {str(address).lower().removeprefix("0x").rjust(40, "0") for address in alloc}
    for address, account in contracts.items():
        if address.hex() in taken:
            raise CommandError(f"The genesis file has an account 0x{address.hex()} already: nothing was written.")
        alloc[address.hex()] = account
    write_output(options.target, json.dumps(document, indent=2), "Unable to write the genesis file.")
    if options.target is not None:
        print(_next_steps(options, contracts))
    return 0


def _next_steps(options: GenesisOptions, contracts: dict[Address, Any]) -> str:
    kinds = ((ACCOUNT_INGRESS, "accounts"), (NODE_INGRESS, "nodes"))
    lines = [f"Wrote {options.target} with {len(contracts)} contracts. Start every node of the network with"]
    for ingress, kind in kinds:
        if ingress in contracts:
            flag = f"--permissions-{kind}-contract"
            version = f" {flag}-version=2" if kind == "nodes" and options.nodes_version == 2 else ""
            lines.append(f"  {flag}-enabled {flag}-address=0x{ingress.hex()}{version}")
    return "\n".join(lines)


def show(options: NetworkOptions, session: CommandSession) -> int:
    """Print permitted accounts and nodes, and the administrators."""
    contracts = _contracts(options)
    if contracts.account_rules is not None:
        print("Accounts that may send transactions:")
        for account in contracts.accounts():
            print(f"  0x{account.hex()}")
    if contracts.node_rules is not None:
        print("Nodes that may connect:")
        for url in contracts.nodes():
            print(f"  {url}")
    if contracts.account_rules is None and contracts.node_rules is None:
        raise CommandError("There are no rules contracts on this network.")
    return 0


class _ChangeStep(Struct, frozen=True):
    """One transaction that changes the permissions."""

    words: str
    to: Address
    data: bytes


def add(options: ChangeOptions, session: CommandSession) -> int:
    """Permit accounts and nodes."""
    return _change(options, session, "add", "is permitted already", "permitted")


def remove(options: ChangeOptions, session: CommandSession) -> int:
    """Remove accounts and nodes."""
    return _change(options, session, "remove", "is not permitted anyway", "no longer permitted")


def _change(options: ChangeOptions, session: CommandSession, verb: str, nothing: str, done: str) -> int:
    if not session.words:
        raise CommandError(f"Name what to {verb}: addresses of accounts (0x…) or enode URLs.")
    items = [_read(word) for word in session.words]
    contracts = _contracts(options)
    steps: list[_ChangeStep] = []
    for item in items:
        if isinstance(item, Enode):
            is_there, rules, call = (
                contracts.has_node(item),
                contracts.node_rules,
                contracts.node_call(f"{verb}Enode", item),
            )
            words = item.url
        else:
            is_there, rules, call = (
                contracts.has_account(item),
                contracts.account_rules,
                account_call(f"{verb}Account", item),
            )
            words = f"0x{item.hex()}"
        assert rules is not None, "asking about an item needs its rules"
        if is_there is (verb == "add"):
            print(f"{words} {nothing}.")
        else:
            steps.append(_ChangeStep(words, rules, call))
    if steps:
        changed = {step.words for step in steps}
        nodes = [item for item in items if isinstance(item, Enode)]
        accounts = [f"0x{item.hex()}" for item in items if not isinstance(item, Enode)]
        change: object = [{"to": f"0x{step.to.hex()}", "data": f"0x{step.data.hex()}"} for step in steps]
        if any(node.host for node in nodes):
            # pass URLs instead of contract calls, because the node resolves the host name of a URL for the dry run
            kinds = ((f"{verb}Nodes", [node.url for node in nodes]), (f"{verb}Accounts", accounts))
            change = {name: [one for one in texts if one in changed] for name, texts in kinds}
        _dry_run(options, contracts.node, change)
    return _send(options, contracts, steps, lambda step, number: f"{step.words} is {done} from block {number} on.")


def _dry_run(options: ChangeOptions, node: RpcNode, change: object) -> None:
    """Print the consequences of a change. Without --force, raises an error if the change stops consensus or the dry run
    fails.
    """
    try:
        found = node.ask("perm_dryRun", change)
    except UnknownMethod as error:
        print(f"The consequences are unknown: the node does not offer perm_dryRun ({error}).")
        return
    except CommandError as error:
        _stop_unknown(options, str(error))
        return
    with node.reading("perm_dryRun"):
        problem = found["problem"]
        if problem is None:
            _show_consequences(options, found)
        else:
            _stop_unknown(options, escape_untrusted(problem))


def _stop_unknown(options: ChangeOptions, why: str) -> None:
    """Raise an error, unless --force is set, because the dry run could not determine the consequences of a change."""
    if not options.is_dry and not options.is_forced:
        raise CommandError(
            f"Nothing was changed: the consequences are unknown ({why}). --force makes the change all the same."
        )
    print(f"The consequences are unknown: {why}")


def _show_consequences(options: ChangeOptions, found: dict[str, Any]) -> None:
    for enode in found["connectionsClosed"]:
        print(f"The connection with {escape_untrusted(enode)} would close.")
    for account, count in found["sendersShutOut"].items():
        shown = escape_untrusted(account)
        print(f"{shown} would lose its permission; {escape_untrusted(count)} of its transactions wait in the pool.")
    validators = found["validators"]
    if validators["losesQuorum"]:
        words = escape_untrusted(
            f"this node would reach {validators['reachableAfter']} of {validators['total']} validators,"
            f" and {validators['quorum']} are needed"
        )
        if not options.is_dry and not options.is_forced:
            raise CommandError(f"Nothing was changed: {words}. --force makes the change all the same.")
        print(f"Consensus would stop: {words}.")


def admins(options: ChangeOptions, session: CommandSession) -> int:
    """Show the administrators, or change them: `add ADDRESS`, `remove ADDRESS`."""
    contracts = _contracts(options)
    if not session.words:
        print("Administrators:")
        for account in contracts.admins():
            print(f"  0x{account.hex()}")
        return 0
    verb, *words = session.words
    if verb not in ("add", "remove") or not words:
        raise CommandError("Expected nothing, `add ADDRESS …` or `remove ADDRESS …`.")
    steps: list[_ChangeStep] = []
    for word in words:
        account = _account(word)
        if contracts.is_admin(account) is (verb == "add"):
            print(f"0x{account.hex()} is {'an' if verb == 'add' else 'no'} administrator already.")
        else:
            steps.append(
                _ChangeStep(f"0x{account.hex()}", contracts.administration, account_call(f"{verb}Admin", account))
            )
    state = "an administrator" if verb == "add" else "no administrator any more"
    return _send(options, contracts, steps, lambda step, number: f"{step.words} is {state} from block {number} on.")


def _send(
    options: ChangeOptions,
    contracts: RulesContracts,
    steps: list[_ChangeStep],
    message: Callable[[_ChangeStep, int], str],
) -> int:
    if options.is_dry:
        for step in steps:
            print(f"Would change {step.words} (contract 0x{step.to.hex()}).")
        if not steps:
            print("Nothing would be changed.")
        return 0
    if not steps:
        return 0
    if options.key_file is None:
        raise CommandError("--key-file is missing: the private key of an administrator is needed for changes.")
    key = load_key(options.key_file)
    if not contracts.is_admin(key.address):
        raise CommandError(f"0x{key.address.hex()} is not an administrator: nothing was changed.")
    for step in steps:
        print(f"Changing {step.words} …", flush=True)
        print(message(step, contracts.node.send(key, step.to, step.data, options.wait_s)), flush=True)
    return 0


def _account(word: str) -> Address:
    try:
        return read_account(word)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _read(word: str) -> Address | Enode:
    try:
        return read_node(word, host_names=True) if word.lower().startswith("enode:") else read_account(word)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _contracts(options: NetworkOptions) -> RulesContracts:
    return RulesContracts(options.node(), options.accounts_contract, options.nodes_contract)


COMMANDS = (
    Command(
        "genesis",
        "Add rules contracts to a genesis file.",
        genesis,
        GenesisOptions,
        examples=("ophion permissions genesis --admin=0xfe3b… --from=genesis.json --to=genesis.json",),
    ),
    Command(
        "list",
        "Show the accounts and nodes that are permitted on a network.",
        show,
        NetworkOptions,
        examples=("ophion permissions list --rpc=http://127.0.0.1:8545",),
    ),
    Command(
        "add",
        "Permit accounts and nodes.",
        add,
        ChangeOptions,
        words="ACCOUNT|ENODE…",
        examples=("ophion permissions add 0x627306090abab3a6e1400e9345bc60c78a8bef57 --key-file=admin.key",),
    ),
    Command(
        "remove",
        "Permit accounts and nodes no longer.",
        remove,
        ChangeOptions,
        words="ACCOUNT|ENODE…",
        examples=("ophion permissions remove 0x627306090abab3a6e1400e9345bc60c78a8bef57 --key-file=admin.key",),
    ),
    Command(
        "admins",
        "Show or change who may change the rules.",
        admins,
        ChangeOptions,
        words="[add|remove ADDRESS…]",
        examples=("ophion permissions admins add 0xf17f52151ebef6c7334fad080c5704d77216b732 --key-file=admin.key",),
    ),
)
