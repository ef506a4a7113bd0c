"""`Permissions`: all rules of a node in one object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ophion.chain.block_import import SenderCheck
from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent
from ophion.errors import ConfigError, RulesError
from ophion.native.executor import State
from ophion.native.transactions import Transaction
from ophion.permissions.decision_counts import DecisionCounts
from ophion.permissions.node_rules import Action, NodeRules, listener
from ophion.permissions.options import DEFAULT_FILE, PermissionConfig
from ophion.permissions.set_code_authorities import authorities
from ophion.primitives.enode import Enode
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address
from ophion.runtime.supervisor import Service
from ophion.runtime.thread_pools import Lane, Lanes

if TYPE_CHECKING:
    from ophion.permissions.account_contract import AccountContract
    from ophion.permissions.allow_list import AllowList
    from ophion.permissions.audit import AuditLog
    from ophion.permissions.contract_admission import ContractAdmission
    from ophion.permissions.entry_codec import EntryCodec

T = TypeVar("T")

RELOAD_FAILED: Final = (
    "Error reloading permissions file. Please use perm_getAccountsWhitelist and perm_getNodesWhitelist to review the"
    " current state of the whitelists"
)


class Permissions:
    """The rules in force. Without a list (None), all accounts or nodes are permitted."""

    def __init__(
        self,
        accounts: AllowList[Address] | None = None,
        nodes: AllowList[Enode] | None = None,
        own_id: bytes = bytes(64),
        fixed: Sequence[Enode] = (),
        bootnodes: Sequence[Enode] = (),
    ) -> None:
        """Create the permission rules. `fixed` holds the bootnodes and static nodes, which cannot be removed from the
        list of nodes.
        """
        self._accounts = accounts
        self._nodes = nodes
        self._fixed = tuple(fixed)
        self.node_rules = NodeRules(own_id, nodes, frozenset(enode.node_id for enode in bootnodes))
        self.account_contract: AccountContract | None = None
        self._local_rule: ContractAdmission | None = None
        self._turn = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self._audit: AuditLog | None = None
        self.account_verdicts = DecisionCounts()
        """Counts of the decisions that the allow-list of accounts has made."""

    @classmethod
    def open(
        cls,
        config: PermissionConfig,
        data_path: Path,
        own_id: bytes = bytes(64),
        fixed: Sequence[Enode] = (),
        bootnodes: Sequence[Enode] = (),
        *,
        host_names: bool = False,
    ) -> Permissions:
        """Open the configured rules; raises `ConfigError` with all problems of the rules files.

        With `host_names`, listed nodes may have host names.
        """
        # lazy import: nodes without rules start faster
        from ophion.permissions.list_requests import ACCOUNTS, NAMED_NODES, NODES

        problems: list[str] = []
        accounts, nodes = None, None
        if config.accounts_file_enabled:
            accounts = _opened(config.accounts_file or data_path / DEFAULT_FILE, ACCOUNTS, problems)
        if config.nodes_file_enabled:
            nodes = _opened(
                config.nodes_file or data_path / DEFAULT_FILE, NAMED_NODES if host_names else NODES, problems
            )
        permissions = cls(accounts, nodes, own_id, fixed, bootnodes)
        problems.extend(permissions._unlisted())
        if problems:
            raise ConfigError(problems)
        return permissions

    def _unlisted(self) -> Iterator[str]:
        """Yield a problem for bootnodes and static nodes that the list does not permit."""
        named = frozenset(enode.node_id for enode in self._nodes or () if enode.host)
        # skip a node with a fixed address that the list names by host name: its address is checked later, once the name
        # is resolved
        fixed = [enode for enode in self._fixed if enode.host or enode.node_id not in named]
        refused = [enode.url for enode in fixed if self.node_rules.refusal_of(enode, Action.DIAL) is not None]
        if refused and self._nodes is not None:
            yield (
                f"Specified node(s) not in nodes-whitelist [{', '.join(refused)}]. Bootnodes and static nodes must be"
                f" permitted: add them to {self._nodes.file.path}."
            )

    def use_contracts(self, config: PermissionConfig, chain: Chain) -> None:
        """Use the configured contracts. Raises `ConfigError` if the node contract is missing or does not answer."""
        if config.accounts_contract_enabled and config.accounts_contract is not None:
            from ophion.permissions.account_contract import AccountContract

            self.account_contract = AccountContract(chain, config.accounts_contract)
            if config.accounts_contract_at_admission:
                from ophion.permissions.contract_admission import ContractAdmission

                self._local_rule = ContractAdmission(self.account_contract, chain)
        if config.nodes_contract_enabled and config.nodes_contract is not None:
            from ophion.permissions.node_contract import NodeContract

            contract = NodeContract(chain, config.nodes_contract, config.nodes_contract_version)
            contract.validate(self.node_rules.local)
            self.node_rules.contract = contract
            chain.events.listen(self._on_chain_event)

    def _on_chain_event(self, event: ChainEvent) -> None:
        """Check connections again in a later iteration of the event loop, so that block processing does not wait for
        this check.
        """
        asyncio.get_running_loop().call_soon(self.node_rules.changed.publish, None)

    def record_changes(self, audit: AuditLog, chain: Chain) -> None:
        """Record every change of lists and contracts in the audit log."""
        from ophion.permissions.contract_changes import ContractChanges

        self._audit = audit
        for kind, listed in (("accounts", self._accounts), ("nodes", self._nodes)):
            if listed is not None:
                audit.follow_list(kind, listed)
        contracts = {}
        if self.account_contract is not None:
            contracts["accounts"] = self.account_contract.address
        if self.node_rules.contract is not None:
            contracts["nodes"] = self.node_rules.contract.address
        if contracts:
            chain.events.listen(audit.follow_contracts(ContractChanges(chain, contracts)))

    def services(self, lanes: Lanes) -> Sequence[Service]:
        """Return the services that the rules need."""
        lists: list[AllowList[Any]] = [one for one in (self._accounts, self._nodes) if one is not None]
        if not lists:
            return []
        from ophion.permissions.file_watcher import RulesFileWatcher

        return [RulesFileWatcher(lists, lanes.files, self._turn)]

    # --- decisions --------------------------------------------------------------------------------------

    def account_refusal(self, sender: Address) -> str | None:
        """Explain why the list of this node does not permit an account to send. Returns None if the list permits the
        account, or if there is no list.
        """
        accounts = self._accounts
        if accounts is None:
            return None
        if sender in accounts.entries:
            return self.account_verdicts.record(None)
        return self.account_verdicts.record(
            f"account 0x{sender.hex()} is not in the list of permitted accounts ({accounts.file.path})"
        )

    def refusals(self, parent: HashedHeader, state: State, candidates: Sequence[Transaction]) -> dict[int, str]:
        """Return position and reason of each candidate that a block on `parent` may not contain.

        `state` is the state after the parent. Called in the thread that builds blocks.
        """
        refused: dict[int, str] = {}
        if self.account_contract is not None:
            refused.update(self.account_contract.refusals(parent, state, candidates))
        if self._accounts is not None:
            for position, candidate in enumerate(candidates):
                for account in (candidate.sender, *authorities(candidate)):
                    reason = self.account_refusal(account)
                    if reason is not None:
                        refused[position] = reason
        return refused

    @property
    def sender_check(self) -> SenderCheck | None:
        """Return the check for blocks of other nodes. The check uses only the contract, because lists differ
        between nodes.
        """
        return None if self.account_contract is None else self.account_contract.check

    @property
    def local_rule(self) -> ContractAdmission | None:
        """Return the rule for transactions of clients, if the account contract is called at admission."""
        return self._local_rule

    # --- lists ------------------------------------------------------------------------------------------

    @property
    def accounts(self) -> AllowList[Address]:
        """The account list. Raises `RulesError` if the node has no account list."""
        if self._accounts is None:
            raise RulesError("Account whitelisting has not been enabled")
        return self._accounts

    @property
    def listed_accounts(self) -> AllowList[Address] | None:
        """The account allow-list, or None if the node does not have this list."""
        return self._accounts

    @property
    def listed_nodes(self) -> AllowList[Enode] | None:
        """The node allow-list, or None if the node does not have this list."""
        return self._nodes

    @property
    def nodes(self) -> AllowList[Enode]:
        """The node list. Raises `RulesError` if the node has no node list."""
        if self._nodes is None:
            raise RulesError("Node whitelisting has not been enabled")
        return self._nodes

    def remove_nodes(self, nodes: Sequence[Enode]) -> None:
        """Remove nodes. Raises `RulesError` for a bootnode or a static node."""
        self.without_nodes(nodes)()

    def without_nodes(self, nodes: Sequence[Enode]) -> Callable[[], None]:
        """Write the list file without these nodes. Returns a function that applies the removal in memory."""
        self.check_fixed(nodes)
        return self.nodes.prepare((), nodes)

    async def change(self, lane: Lane, prepare: Callable[[], Callable[[], None]]) -> None:
        """Apply a change to the allow-lists. Changes run one at a time: a worker thread writes the file, then the event
        loop updates the list.

        A started change finishes even if the caller is cancelled, so that file and memory agree.
        """
        task = asyncio.get_running_loop().create_task(self._change(lane, prepare), name="change of permissions")
        self._changes.add(task)
        task.add_done_callback(self._changed)
        # `wait` does not retrieve the exception of the task if this caller is cancelled, so `_changed` retrieves it
        await asyncio.wait({task})
        task.result()

    def _changed(self, task: asyncio.Task[None]) -> None:
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # retrieve the exception, because a cancelled caller does not (asyncio would log it)

    async def _change(self, lane: Lane, prepare: Callable[[], Callable[[], None]]) -> None:
        async with self._turn:
            finish = await lane.run(prepare)
            try:
                finish()
            finally:
                if self._audit is not None:
                    await self._audit.written()

    def check_fixed(self, nodes: Sequence[Enode]) -> None:
        """Raise `RulesError` if one of these nodes is a bootnode or a static node."""
        if not set(map(listener, self._fixed)).isdisjoint(map(listener, nodes)):
            raise RulesError("Cannot remove a fixed node (bootnode or static node) from whitelist")

    def reloading(self) -> Callable[[], None]:
        """Read the files of accounts and nodes, and return a function that replaces both lists. After an error, both
        lists stay unchanged.
        """
        if self._accounts is None and self._nodes is None:
            raise RulesError("Node/Account whitelisting has not been enabled")
        try:
            accounts = None if self._accounts is None else self._accounts.file.read()
            nodes = None if self._nodes is None else self._nodes.file.read()
        except RulesError as error:
            raise RulesError(RELOAD_FAILED, error.message) from None
        steps = []
        if self._accounts is not None and accounts is not None:
            steps.append(self._accounts.replacing(accounts))
        if self._nodes is not None and nodes is not None:
            steps.append(self._nodes.replacing(nodes))

        def finish() -> None:
            for step in steps:
                step()

        return finish


def _opened(path: Path, codec: EntryCodec[T], problems: list[str]) -> AllowList[T] | None:
    # lazy import: nodes without rules start faster
    from ophion.permissions.allow_list import AllowList
    from ophion.permissions.allow_list_file import RulesFile

    try:
        return AllowList(RulesFile(path, codec))
    except RulesError as error:
        problems.append(error.message)
        return None
