"""`Privacy`: the entry point of JSON-RPC to private transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ophion.chain.queries import BlockView, ChainQueries
from ophion.enclave.encoding import base64_text
from ophion.enclave.interface import KEY_SIZE, Enclave, Group
from ophion.errors import EnclaveError, PrivacyRefused
from ophion.native.executor import State
from ophion.native.privacy import PrivateReceiptRecord, PrivateTransaction, decode_private_transaction
from ophion.pool.pool import TxPool
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.revert_reason import revert_reason
from ophion.primitives.types import Address, Hash32
from ophion.privacy.flexible_groups import FlexibleGroups
from ophion.privacy.payloads import MarkerPosition
from ophion.privacy.private_executor import PrivateExecutor
from ophion.privacy.submission import Submission
from ophion.privacy.tenant_authorizer import TenantAuthorizer

FOLLOW_LIMIT_S: Final = 5.0
"""Seconds for which a request waits for private states to reach the head."""
_SHOWN_GROUPS: Final = 256
_NOT_OURS: Final = "this tenant is not a participant, or the payload has not arrived; priv_catchUp asks for it"
_STATUS: Final = {0: "failed", 1: "executed", 2: "invalid"}


class Privacy:
    """Private transactions of one node."""

    def __init__(
        self,
        enclave: Enclave,
        executor: PrivateExecutor,
        submission: Submission,
        queries: ChainQueries,
        pool: TxPool,
        precompile: Address,
        is_shared: bool = False,
        flexible: FlexibleGroups | None = None,
    ) -> None:
        self.enclave = enclave
        self.executor = executor
        self.ledger = executor.ledger
        self.precompile = precompile
        """Address of the privacy precompile that marker transactions of this node call."""
        self.flexible = flexible
        members = (lambda group: None) if flexible is None else flexible.members
        self.tenants = TenantAuthorizer(enclave, is_shared, members)
        self._submission = submission
        self._queries = queries
        self._pool = pool

    # --- sending --------------------------------------------------------------------------------

    async def send(self, raw: bytes) -> Hash32:
        """Check and distribute a private transaction and send its marker. Returns the marker's hash."""
        return await self._submission.send(raw, self.tenants.keys())

    async def distribute(self, raw: bytes) -> bytes:
        """Check and distribute a private transaction without a marker. Returns the data for the marker."""
        return await self._submission.distribute(raw, self.tenants.keys())

    # --- transactions ---------------------------------------------------------------------------

    async def settled(self) -> None:
        """Wait until private states have reached the current head, for a bounded time."""
        await self.executor.reach_head(FOLLOW_LIMIT_S)

    async def enter(self, group: bytes, named: Sequence[bytes] = ()) -> None:
        """Authorize a request about a group, then wait until private states have reached the head. `named` are the keys
        from which the id of the group was computed, if the request has these keys.
        """
        await self.tenants.authorize(group, named)
        await self.settled()
        await self.executor.wait_for_group(group, FOLLOW_LIMIT_S)

    async def receipt(self, marker: Hash32) -> tuple[PrivateReceiptRecord, MarkerPosition] | None:
        """Return the receipt of a transaction. None if its marker is not mined, if this node has no result, or if the
        client may not see the transaction.
        """
        await self.settled()
        place = self._place(marker)
        if place is None:
            return None
        record = self.ledger.receipt(place.block, marker)
        if record is None and (key := self._payload_key(place)) is not None:
            group = self.executor.backlog.group_of(key)
            if group is not None:
                await self.executor.wait_for_group(group, FOLLOW_LIMIT_S)
                record = self.ledger.receipt(place.block, marker)
        if record is None or not await self.tenants.may_see(record):
            return None
        return record, MarkerPosition(record.payload_key, place.number, place.index, place.block, marker)

    async def transaction(self, marker: Hash32) -> PrivateTransaction | None:
        """Return the private transaction of a mined marker. None if this node or tenant cannot read the transaction."""
        found = await self.receipt(marker)
        if found is None:
            return None
        (read,) = await self.executor.payloads.read_now([found[0].payload_key])
        return None if read is None else decode_private_transaction(read.transaction)

    def _place(self, marker: Hash32) -> MarkerPosition | None:
        found = self._queries.transaction_position(marker)
        return None if found is None else MarkerPosition(b"", found[1], found[2], found[0], marker)

    async def nonce(self, group: bytes, account: Address, named: Sequence[bytes] = ()) -> int:
        """Return the number of executed private transactions of an account in a group.

        `named` are the keys from which the id of the group was computed.
        """
        await self.enter(group, named)
        return self.ledger.nonce(group, account, self._queries.head_number)

    # --- states ---------------------------------------------------------------------------------

    async def state(self, group: bytes, view: BlockView) -> State:
        """Return the state of a group after a block, on top of the public state."""
        await self.enter(group)
        return self.ledger.state(group, view.header.number, view.state)

    async def root(self, group: bytes, number: int) -> Hash32:
        """Return the root of a group's state after a canonical block."""
        await self.enter(group)
        return self.ledger.root(group, number)

    # --- groups ---------------------------------------------------------------------------------

    async def create_group(self, members: Sequence[bytes], name: str, description: str) -> Group:
        """Create a group. This node, or the tenant that sends the request, must be a member."""
        self._refuse_flexible()
        return await self.enclave.create_group(members, self._self_among(members), name, description)

    async def delete_group(self, group: bytes) -> bytes:
        """Record a group as deleted."""
        self._refuse_flexible()
        await self.tenants.authorize(group)
        known = await self.enclave.group(group)
        return await self.enclave.delete_group(group, self._self_among(() if known is None else known.members))

    async def find_groups(self, members: Sequence[bytes]) -> list[Group]:
        """Return the groups with exactly these members. A tenant that sends the request must be a member."""
        self._require_tenant_among(members)
        return await self.enclave.find_groups(members)

    async def find_flexible_groups(self, members: Sequence[bytes]) -> list[Group]:
        """Return the flexible groups with exactly these members. A tenant that sends the request must be a member."""
        self._require_tenant_among(members)
        if self.flexible is None:
            return []
        await self.settled()
        return await self.flexible.find(members)

    def _refuse_flexible(self) -> None:
        if self.flexible is not None:
            raise EnclaveError("flexible groups are managed by their contract; call its methods instead", None)

    def _require_tenant_among(self, members: Sequence[bytes]) -> None:
        key = self.tenants.key()
        if key is not None and key not in members:
            raise EnclaveError("a tenant finds groups that have the tenant's key among their members", None)

    def _self_among(self, members: Sequence[bytes]) -> bytes:
        """Return a key that this request may use and that is among these members, or else the default key."""
        keys = self.tenants.keys()
        return next((key for key in keys if key in members), keys[0])

    # --- diagnostics ----------------------------------------------------------------------------

    async def explain(self, marker: Hash32) -> dict[str, Any]:
        """Return the status of a private transaction and the reason for this status, for priv_explain."""
        await self.settled()
        place = self._place(marker)
        if place is None:
            is_waiting = self._pool.get(marker) is not None
            state, words = ("pending", "its marker waits in the pool") if is_waiting else ("unknown", "no such marker")
            return {"state": state, "reason": words}
        found: dict[str, Any] = {"blockNumber": quantity(place.number), "blockHash": data(place.block)}
        record = self.ledger.receipt(place.block, marker)
        if record is not None and await self.tenants.may_see(record):
            return found | self._explained(record)
        key = self._payload_key(place)
        if key is None:
            return found | {"state": "not a marker", "reason": "the transaction does not call the privacy precompile"}
        found["payloadKey"] = data(key)
        waiting = self.executor.backlog.group_of(key)
        if waiting is not None and await self._may_see_group(waiting):
            return found | self._backlogged(waiting)
        if self.tenants.key() is not None:  # do not reveal to a tenant whether another tenant has the payload
            return found | {"state": "not ours", "reason": _NOT_OURS}
        return found | await self._without_result(key)

    async def _may_see_group(self, group: bytes) -> bool:
        key = self.tenants.key()
        return key is None or await self.tenants.is_member(key, group)

    def _backlogged(self, group: bytes) -> dict[str, Any]:
        found = {"privacyGroupId": base64_text(group)}
        if self.executor.backlog.groups[group].is_suspended:
            reason = "a transaction of its group names more gas than --privacy-max-transaction-gas"
            return found | {"state": "suspended", "reason": reason}
        return found | {"state": "waiting", "reason": "its group is executed in the backlog"}

    async def _without_result(self, key: bytes) -> dict[str, Any]:
        (read,) = await self.executor.payloads.read_now([key])
        if read is not None:
            return {"state": "waiting", "reason": "its payload is here and will be executed"}
        if not self.executor.is_at_head:
            return {"state": "waiting", "reason": f"private states have reached block {self.executor.number}"}
        status = self.enclave.status()
        return {
            "state": "no payload",
            "reason": "this node is not a participant, or the payload has not arrived; priv_catchUp asks for it",
            "askFrom": sorted(status.get("peers", {})),
        }

    def _explained(self, record: PrivateReceiptRecord) -> dict[str, Any]:
        found: dict[str, Any] = {
            "state": _STATUS[record.status],
            "payloadKey": data(record.payload_key),
            "privacyGroupId": base64_text(record.group),
        }
        if _STATUS[record.status] != "invalid":
            # show no state root for an invalid transaction, because its sender need not be a member
            found["stateRoot"] = data(record.root)
        if record.reason:
            words = revert_reason(record.revert_data) if record.revert_data else None
            found["reason"] = record.reason if words is None else f"{record.reason}: {words}"
        return found

    def _payload_key(self, place: MarkerPosition) -> bytes | None:
        places = self.executor.markers_in(place.block, place.number)
        return next((one.payload_key for one in places if one.hash == place.hash), None)

    async def catch_up(self, group: bytes | None) -> int:
        """Ask other members for missing payloads. Returns how many payloads arrived. The new payloads are executed as
        late payloads.
        """
        is_tenant = self.tenants.key() is not None
        if group is not None:
            await self.tenants.authorize(group)
        elif is_tenant:
            raise PrivacyRefused("Name the privacy group: a tenant asks for the payloads of one group")
        fetched = await self.enclave.fetch_missing(group)
        found = await self.executor.late.request_missing()
        await self.settled()
        # hide the count `found` from a tenant, because it includes the payloads of all tenants
        return fetched if is_tenant else max(fetched, found)

    def status(self) -> dict[str, Any]:
        """Return keys, peers, groups, outbox and execution progress. Refused with multi-tenancy."""
        if self.tenants.is_shared:
            raise PrivacyRefused("priv_status shows all tenants of this node: the operator reads the metrics instead")
        number = self._queries.head_number
        ids = self.ledger.groups(bytes(KEY_SIZE), _SHOWN_GROUPS)
        executor = self.executor
        return self.enclave.status() | {
            "followed": quantity(executor.number),
            "head": quantity(number),
            "waitsForEnclave": executor.is_waiting_for_enclave,
            "executed": executor.counts.executed,
            "late": executor.counts.late,
            "states": {base64_text(one): data(self.ledger.root(one, number)) for one in ids},
        }
