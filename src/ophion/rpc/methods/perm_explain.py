"""perm_explain, perm_dryRun and txpool_explain: explain decisions and preview changes (Ophion only)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias, TypeGuard

from ophion.native.crypto import address_of
from ophion.permissions.contract_abi import read_account_changes, read_node_change
from ophion.permissions.dry_run import Change, PeerConnection, dry_run, reachable
from ophion.permissions.explain import RuleAnswer, TransactionFields, explain_connection, explain_sending
from ophion.permissions.list_requests import read_node
from ophion.pool.events import DropReason
from ophion.pool.queue import PooledTransaction
from ophion.primitives.enode import Enode
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import Address, BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND, invalid_params
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import (
    BlockParam,
    HashParam,
    WireType,
    decode_address,
    decode_data,
    decode_gas,
    object_result,
)
from ophion.rpc.services.block_reference import header_at
from ophion.rpc.services.context import RpcContext

Subject: TypeAlias = TransactionFields | tuple[Enode, Enode] | Enode


def _decode_subject(value: object) -> Subject:
    if isinstance(value, str):
        return _node(value) if value.lower().startswith("enode:") else TransactionFields(decode_address(value))
    if isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value):
        return _node(value[0]), _node(value[1])
    if isinstance(value, dict) and "from" in value:
        to, payload = value.get("to"), value.get("input", value.get("data"))
        return TransactionFields(
            decode_address(value["from"]),
            None if to is None else decode_address(to),
            _number(value.get("value", "0x0")),
            _number(value.get("gasPrice", "0x0")),
            _number(value.get("gas", "0x5208")),
            b"" if payload is None else decode_data(payload),
        )
    raise invalid_params("an account, a transaction with from, an enode URL or two of them are expected")


def _number(value: object) -> int:
    number = decode_gas(value)
    if number.bit_length() > 256:
        raise invalid_params("a number of more than 256 bits")
    return number


def _node(text: str) -> Enode:
    try:
        return read_node(text)
    except ValueError as error:
        raise invalid_params(str(error)) from None


SubjectParam = Annotated[
    Subject,
    WireType(
        "subject",
        "an account, a transaction object, an enode URL, or an array of two enode URLs",
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object"},
                {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
            ]
        },
        _decode_subject,
    ),
]
ExplainResult = Annotated[
    dict[str, Any], object_result("explanation", "allowed, block, reason and rules", {"type": "object"})
]
TransactionExplainResult = Annotated[
    dict[str, Any], object_result("explanation", "state and reason", {"type": "object"})
]


@method("perm_explain")
async def explain(ctx: RpcContext, subject: SubjectParam, block: BlockParam = BlockTag.LATEST) -> ExplainResult:
    """Returns whether an account may send a transaction or a node may connect, by which rule and since when.

    Lists all rules in force: `file` with its line, `contract` with its address. `since` is the first block at which a
    contract gave the same answer, within the last 256 blocks. Rules in files are always the current rules. If one node
    is given, the connection between that node and this node is checked.
    """
    header = header_at(ctx, block)
    if header is None:
        raise BLOCK_NOT_FOUND()
    permissions, chain = ctx.permissions, ctx.queries.chain
    if isinstance(subject, TransactionFields):
        sending = subject
        answers = await ctx.lanes.read.run(lambda: explain_sending(permissions, chain, header, sending))
    else:
        local = permissions.node_rules.local
        source, destination = (subject, local) if isinstance(subject, Enode) else subject
        answers = await ctx.lanes.read.run(lambda: explain_connection(permissions, chain, header, source, destination))
    refusals = [answer.reason for answer in answers if not answer.is_allowed]
    return {
        "allowed": not refusals,
        "block": quantity(header.number),
        "reason": "; ".join(refusals) if refusals else _why_allowed(answers),
        "rules": [_rule(answer) for answer in answers],
    }


def _why_allowed(answers: list[RuleAnswer]) -> str:
    return "; ".join(answer.reason for answer in answers) or "there are no rules about this on this node"


def _rule(answer: RuleAnswer) -> dict[str, Any]:
    return {
        "source": answer.source,
        "place": answer.place,
        "allowed": answer.is_allowed,
        "reason": answer.reason,
        "since": None if answer.since is None else quantity(answer.since),
    }


_DEPARTED = {
    DropReason.REPLACED: "replaced by another transaction with the same sender and nonce",
    DropReason.EVICTED: "evicted from the full pool because it paid least",
    DropReason.EXPIRED: "expired: it was in the pool for too long",
    DropReason.STALE: "its nonce was used by another transaction",
    DropReason.INVALID: "no block could be built with it",
    DropReason.NOT_PERMITTED: "its sender is not permitted",
}


@method("txpool_explain", needs={"pool", "chain"})
async def explain_transaction(ctx: RpcContext, hash: HashParam) -> TransactionExplainResult:
    """Returns the state of a transaction, and the reason if the transaction is not mined.

    States: `mined`, `waiting` (for the next block), `queued` (behind a missing nonce), `too-cheap`, `not-permitted`,
    `dropped` or `unknown`. The node remembers the last 4096 dropped transactions.
    """
    item = ctx.pool.get(hash)
    if item is not None:
        return await _waiting(ctx, item)
    position = ctx.queries.transaction_position(hash)
    if position is not None:
        header = ctx.queries.header(position[0])
        if header is not None:
            text = f"in block {header.number}"
            return {
                "state": "mined",
                "reason": text,
                "blockNumber": quantity(header.number),
                "blockHash": data(header.hash),
            }
    departure = ctx.pool.departures.get(hash)
    if departure is None:
        return {"state": "unknown", "reason": "this node has not received it, or no longer remembers it"}
    return {
        "state": "dropped",
        "reason": departure.detail or _DEPARTED[departure.reason],
        "kind": departure.reason.value,
        "droppedAt": datetime.fromtimestamp(departure.at, UTC).isoformat().replace("+00:00", "Z"),
    }


async def _waiting(ctx: RpcContext, item: PooledTransaction) -> dict[str, Any]:
    head = ctx.queries.head
    account = ctx.queries.head_state.account(item.sender)
    next_nonce = ctx.pool.next_nonce(item.sender)
    first = next_nonce if next_nonce is not None else (0 if account is None else account[0])
    if item.nonce > first or (next_nonce is not None and item.nonce >= next_nonce):
        text = f"it waits for nonce {first} of its sender"
        return {"state": "queued", "reason": text, "missingNonce": quantity(first)}
    transaction = item.transaction
    sending = TransactionFields(
        item.sender,
        transaction.to,
        transaction.value,
        transaction.max_fee_per_gas if transaction.type < 2 else 0,
        item.gas_limit,
        transaction.input,
    )
    answers = await ctx.lanes.read.run(lambda: explain_sending(ctx.permissions, ctx.queries.chain, head, sending))
    refusals = [answer.reason for answer in answers if not answer.is_allowed]
    if refusals:
        return {"state": "not-permitted", "reason": "; ".join(refusals)}
    base_fee = ctx.queries.next_block().header.base_fee_per_gas or 0
    needed = max(base_fee, ctx.mining.floor.min_gas_price)
    if item.max_fee < needed:
        return {
            "state": "too-cheap",
            "reason": f"its maximum fee is {item.max_fee} wei per gas; the next block requires {needed}",
        }
    return {"state": "waiting", "reason": "it can be in the next block"}


_CHANGES = ("addAccounts", "removeAccounts", "addNodes", "removeNodes")


def _decode_change(value: object) -> Change:
    calls = [call for call in (value if isinstance(value, list) else [value]) if _is_call(call)]
    if calls and (calls == value or calls == [value]):
        return _called([decode_data(call["data"]) for call in calls])
    if not isinstance(value, dict) or not value or set(value) - set(_CHANGES):
        raise invalid_params(f"an object with some of {', '.join(_CHANGES)}, or calls with data, are expected")
    texts = {name: value.get(name, []) for name in _CHANGES}
    if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in texts.values()):
        raise invalid_params("arrays of strings are expected")
    return Change(
        [decode_address(text) for text in texts["addAccounts"]],
        [decode_address(text) for text in texts["removeAccounts"]],
        [_node(text) for text in texts["addNodes"]],
        [_node(text) for text in texts["removeNodes"]],
    )


def _is_call(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and "data" in value and set(value) <= {"to", "data"}


def _called(calls: Sequence[bytes]) -> Change:
    """Return the permission change that these contract calls would make. If several calls set an entry, the last call
    counts.
    """
    accounts: dict[Address, bool] = {}
    nodes: dict[Enode, bool] = {}
    for call in calls:
        account, node = read_account_changes(call), read_node_change(call)
        if account is not None:
            accounts |= dict.fromkeys(account[1], account[0])
        elif node is not None:
            nodes[node[1]] = node[0]
        else:
            raise invalid_params("data: not a call of addAccount(s), removeAccount, addEnode or removeEnode")
    return Change(
        [account for account, is_added in accounts.items() if is_added],
        [account for account, is_added in accounts.items() if not is_added],
        [node for node, is_added in nodes.items() if is_added],
        [node for node, is_added in nodes.items() if not is_added],
        is_call=True,
    )


_LISTS_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "array", "items": {"type": "string"}} for name in _CHANGES},
    "additionalProperties": False,
}
_CALL_SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
    "additionalProperties": False,
}
ChangeParam = Annotated[
    Change,
    WireType(
        "change",
        "additions and removals, or a call to a rules contract, or several",
        {"anyOf": [_LISTS_SCHEMA, _CALL_SCHEMA, {"type": "array", "items": _CALL_SCHEMA, "minItems": 1}]},
        _decode_change,
    ),
]
DryRunResult = Annotated[dict[str, Any], object_result("dry run", "what would change", {"type": "object"})]


@method("perm_dryRun", aliases=["perm_rehearse"], needs={"chain", "pool"})
async def dry_run_change(ctx: RpcContext, change: ChangeParam) -> DryRunResult:
    """Returns the effects of a permission change without making the change.

    Shows which connections would close, whether this node would still reach a quorum of validators, and which senders
    with pooled transactions would be rejected. A call changes the contracts of the network. Other changes apply to the
    allowlists of this node if the node has allowlists, otherwise to the contracts. `problem` says why the whole change
    would be rejected.
    """
    queries, peers = ctx.queries, ctx.peers
    connections = [PeerConnection(one.enode, one.address, one.is_inbound) for one in peers.peers] if peers else []
    pooled = Counter(item.sender for item in ctx.pool.transactions())
    head, state = queries.head, queries.head_state
    found = dry_run(ctx.permissions, change, connections, pooled, head, state)
    members = await ctx.lanes.read.run(lambda: queries.engine.members(head, queries.chain))
    own = address_of(ctx.node.node_id)
    staying = [one.address for one in connections if one not in found.closed]
    before = reachable(members, own, (one.address for one in connections))
    after = reachable(members, own, staying)
    quorum = _quorum(ctx, len(members))
    return {
        "problem": found.problem,
        "connectionsClosed": [one.enode.url for one in found.closed],
        "validators": {
            "total": len(members),
            "quorum": quorum,
            "reachable": before,
            "reachableAfter": after,
            "losesQuorum": before >= quorum > after,
        },
        "sendersShutOut": {data(sender): pooled[sender] for sender in found.shut_out},
    }


def _quorum(ctx: RpcContext, count: int) -> int:
    """Return how many validators a block needs: two thirds with IBFT 2.0 and QBFT, more than half with Clique."""
    if not count:
        return 0
    return (2 * count + 2) // 3 if ctx.ibft is not None or ctx.qbft is not None else count // 2 + 1
