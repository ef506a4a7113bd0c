"""Validators with real keys, headers and encoded messages, but without sockets and drivers."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from ophion.chainspec.genesis import Genesis
from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import (
    BftEvent,
    BuildProposal,
    CancelTimer,
    CheckProposal,
    ImportBlock,
    MessageReceived,
    Multicast,
    ProposalBuilt,
    ProposalChecked,
    RelayMessage,
    SetTimer,
    StoreVotes,
    TimerKind,
)
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.messages import BftMessage, RawMessage
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.consensus.engine import BlockPreferences
from ophion.errors import InvalidHeader
from ophion.native.crypto import PrivateKey
from ophion.primitives import rlp
from ophion.primitives.header import Header
from tests.unit.consensus.bft.ledger import Ledger

HOP_S = 0.01


class Node:
    """One validator: its chain, its key, its machine and its disk."""

    def __init__(self, genesis: Genesis, key: PrivateKey, profile: WireProfile) -> None:
        self.ledger = Ledger(genesis)
        self.key = key
        self.profile = profile
        self.machine: BftStateMachine | None = None
        self.disk: bytes | None = None
        self.timers: dict[TimerKind, int] = {}


class WireNetwork:
    """An event queue and nodes that exchange encoded messages."""

    def __init__(self, genesis: Genesis, keys: Sequence[PrivateKey], profiles: Sequence[WireProfile]) -> None:
        self.nodes = [Node(genesis, key, profile) for key, profile in zip(keys, profiles, strict=True)]
        self.now = 0.0
        self.sent: list[tuple[Node, BftMessage]] = []
        self.drops: Callable[[Node, Node, BftMessage], bool] = lambda _sender, _receiver, _message: False
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def start(self, node: Node) -> None:
        """Start a node with the content of its disk."""
        protocol = node.ledger.engine.protocol(node.ledger.head.number + 1)
        votes = DurableVotes.decode(node.disk, protocol) if node.disk is not None else None
        factory = KeyMessageFactory(protocol, node.key, node.profile)
        node.machine = BftStateMachine(protocol, factory, node.ledger.engine.limits(1), durable_votes=votes)
        self._tell(node, node.ledger.engine.new_head(node.ledger.head, node.ledger))

    def stop(self, node: Node) -> None:
        node.machine = None
        node.timers.clear()

    def run(self, until: float) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
        self.now = until

    def _at(self, time: float, action: Callable[[], None]) -> int:
        self._count += 1
        heapq.heappush(self._heap, (time, self._count, action))
        return self._count

    def _tell(self, node: Node, event: BftEvent) -> None:
        if node.machine is None:
            return
        for effect in node.machine.handle(event, self.now):
            self._run(node, effect)

    def _run(self, node: Node, effect: Any) -> None:
        if isinstance(effect, SetTimer):
            self._set_timer(node, effect)
        elif isinstance(effect, CancelTimer):
            node.timers.pop(effect.kind, None)
        elif isinstance(effect, StoreVotes):
            node.disk = effect.durable_votes.encode()
        elif isinstance(effect, Multicast):
            self.sent.append((node, effect.message))
            self._send(node, effect.message)
        elif isinstance(effect, BuildProposal):
            self._build(node, effect)
        elif isinstance(effect, CheckProposal):
            self._check(node, effect)
        elif isinstance(effect, ImportBlock):
            self._import(node, effect)
        else:
            assert isinstance(effect, RelayMessage) or effect is not None

    def _set_timer(self, node: Node, effect: SetTimer) -> None:
        token = self._count + 1

        def fire() -> None:
            if node.timers.get(effect.kind) == token:
                del node.timers[effect.kind]
                self._tell(node, effect.event)

        assert self._at(max(self.now, effect.at), fire) == token
        node.timers[effect.kind] = token

    def _send(self, sender: Node, message: BftMessage) -> None:
        for receiver in self.nodes:
            if receiver is not sender and not self.drops(sender, receiver, message):
                self._at(self.now + HOP_S, lambda receiver=receiver: self._receive(receiver, sender, message.raw))  # type: ignore[misc]

    def _receive(self, node: Node, sender: Node, raw: RawMessage) -> None:
        if node.machine is not None:
            protocol = node.ledger.engine.protocol(node.ledger.head.number + 1)
            self._tell(node, MessageReceived(protocol.decode(raw), sender.key.address))

    def _build(self, node: Node, order: BuildProposal) -> None:
        engine = node.ledger.engine
        header = engine.prepare(node.ledger.head, BlockPreferences(order.timestamp, node.key.address), node.ledger)
        block = rlp.list_of([header.encode(), rlp.EMPTY_LIST, rlp.EMPTY_LIST])
        candidate = engine.candidate(block, order.round)
        self._at(self.now, lambda: self._tell(node, ProposalBuilt(order.height, order.round, candidate, True)))

    def _check(self, node: Node, order: CheckProposal) -> None:
        block = order.proposal.block
        engine = node.ledger.engine
        header = engine.hashed(Header.decode(rlp.split_list(block.encoded, 1024)[0]))
        problem = None
        try:
            engine.verify_proposal(header, node.ledger.head, node.ledger, int(self.now))
        except InvalidHeader as error:
            problem = str(error)
        answer = ProposalChecked(order.proposal.height, order.proposal.round, block.digest, problem)
        self._at(self.now, lambda: self._tell(node, answer))

    def _import(self, node: Node, order: ImportBlock) -> None:
        engine, ledger = node.ledger.engine, node.ledger
        header = Header.decode(rlp.split_list(order.block.encoded, 1024)[0])
        sealed = engine.hashed(engine.attach(header, order.seals))
        assert sealed.hash == order.block.hash
        engine.verify(sealed, ledger.head, ledger, int(self.now))
        ledger.headers.append(sealed)
        self._at(self.now, lambda: self._tell(node, engine.new_head(sealed, ledger)))
