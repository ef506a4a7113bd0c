"""Transaction gossip: announces the pool's transactions, and submits transactions of peers to the pool.

New transactions are collected for a short time. A random sample of peers (the square root of their number) gets them in
full, and the other peers get their hashes. Peers that already know a transaction are skipped. Block producers get a
transaction in full until one of them is known to have it. Fetching a transaction by hash takes half a second, which
would make block sizes alternate between large and small.

A block producer sends its transactions to all other producers, and validators report their connections. So a node does
not relay a transaction of one producer to another if both have reported their connection (decision 206). If the
transaction is still in the pool after `RELAY_LATER_S`, the node announces it by hash, in case the producer has sent it
only to some.

Ophion validators name the senders of the transactions that they send to each other, in a message of the sub-protocol
vid before the Transactions message. A named sender is checked, which takes less time than recovering it (decision 217).

A peer that is busy or has a full pool drops transactions. So executable transactions that stay in the pool for long are
announced again. A transaction that this pool evicted is accepted again.

A transaction from a peer is marked as known to that peer before it enters the pool, so it is never sent back. While
this node is far behind, it ignores all transaction messages, because it cannot validate them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import islice
from math import inf, isqrt
from random import Random
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from ophion.chain.events import ChainEvent, Reorged
from ophion.native.wire import join_transactions
from ophion.peers.eth.messages import Code, TransactionHashes
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.peers import EthPeers
from ophion.peers.eth.recent_transactions import RecentTransactions
from ophion.peers.eth.transaction_fetcher import TransactionFetcher
from ophion.peers.eth.transaction_intake import IntakeShare, TransactionIntake
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.pool.admission import BLOB_TYPE
from ophion.pool.events import Added, DropReason, PoolEvent
from ophion.pool.pool import TxPool
from ophion.pool.queue import PooledTransaction
from ophion.primitives.types import ADDRESS_LENGTH, Address, Hash32

COLLECT_S: Final = 0.02
"""Seconds for which new transactions are collected into one message."""
BUSY_COLLECT_S: Final = 0.05
"""Seconds of collection while many transactions arrive. Fewer and larger messages wake peers less often, and fill the
groups in which receivers process signatures.
"""
BUSY_RATE: Final = 800.0
"""New transactions per second from which on `BUSY_COLLECT_S` applies."""
MAX_HASHES: Final = 4096
MAX_MAKERS: Final = 8
"""Maximum number of block producers that get a transaction in full, until one of them is known to have it."""
RELAY_LATER_S: Final = 2.0
"""Seconds before a transaction of a block producer is announced to other producers with a connection to that producer.
"""
INTRODUCE_S: Final = 0.2
"""Seconds before the pool is announced to a new peer. Many inbound connections end earlier."""
ANNOUNCE_AGAIN_S: Final = 10.0
"""Seconds between repeated announcements of old transactions."""
MAX_REMINDED: Final = 1024
LARGE: Final = 4096
"""Transactions above this size in bytes are announced by hash only."""
_MESSAGE: Final = 100 * 1024
"""Maximum bytes of transactions in one message."""
_SEEN: Final = 65_536


class _TransactionsMessage(Struct, frozen=True):
    """A Transactions message, which may go to several peers."""

    payload: bytes
    hashes: Sequence[Hash32]
    senders: bytes
    """Addresses of the senders, one after the other."""


class TransactionGossip:
    """Sends transactions to peers and receives transactions from peers."""

    def __init__(
        self,
        pool: TxPool,
        peers: EthPeers,
        makers: Container[Address],
        lane: FairWorkerQueue[Peer],
        random: Random,
        is_accepting: Callable[[], bool],
        is_member: Callable[[EthPeer], bool],
    ) -> None:
        """Create the transaction gossip. `makers` holds the addresses of the next block producers.

        `is_accepting` returns whether this node is close enough to the head to validate transactions.
        """
        self.sent = 0
        """Number of transactions sent in full, for metrics."""
        self.announced_out = 0
        """Number of transactions sent by hash, for metrics."""
        self.skipped = 0
        """Number of ignored Transactions messages, for metrics."""
        self.are_linked: Callable[[Peer, Peer], bool] = lambda peer, other: False
        """Whether two peers have both reported their connection. Set by the node if validators report connections."""
        self.name_senders: Callable[[Peer, bytes], object] | None = None
        """Sends addresses to a peer that accepts named senders. Set by the node of a BFT network."""
        self._named = WeakKeyDictionary[Peer, bytes]()
        """Senders that block producers have named for their next Transactions message. The references to peers are
        weak, because `left` is not called for a connection that ends before it joins the eth protocol.
        """
        self._pool = pool
        self._peers = peers
        self._makers = makers
        self._lane = lane
        self._random = random
        self._is_accepting = is_accepting
        self._is_member = is_member
        self._unknown_share = IntakeShare()
        """Intake limits that all unknown peers share, so that their number does not delay network members."""
        self._seen = RecentTransactions(_SEEN)
        self._fetcher = TransactionFetcher(self._is_new, self._fetched)
        self._intakes: dict[EthPeer, TransactionIntake] = {}
        self._fresh: list[PooledTransaction] = []
        self._is_due = False
        self._passed_at = -inf
        """Time of the event loop at which collected transactions were last sent."""
        self._is_busy = False
        self._is_announcement_scheduled = False
        self._latest = 0
        """Sequence number of the newest pooled transaction."""
        pool.events.listen(self._on_pool_event)

    @property
    def awaited(self) -> int:
        """Number of announced transactions that have not arrived."""
        return len(self._fetcher)

    def _is_new(self, hash: Hash32) -> bool:
        return hash not in self._seen and self._pool.get(hash) is None

    # --- messages from peers --------------------------------------------------------------------

    def received(self, peer: EthPeer, payload: bytes) -> None:
        """Handle a Transactions message."""
        named = self._named.pop(peer.peer, b"")
        if not (self._is_accepting() and self._intakes[peer].take_message(payload, named)):
            self.skipped += 1

    def senders_named(self, peer: Peer, senders: bytes) -> None:
        """Keep the senders that a block producer names for its next Transactions message. Other peers are ignored,
        because checking a wrong sender costs time.
        """
        if peer.validator_address in self._makers and len(senders) % ADDRESS_LENGTH == 0:
            self._named[peer] = senders

    def announced(self, peer: EthPeer, payload: bytes) -> None:
        """Handle a NewPooledTransactionHashes message."""
        if self._is_accepting():
            self._fetcher.announced(peer, payload)

    def _fetched(self, peer: EthPeer, found: list[tuple[Hash32, bytes]]) -> None:
        intake = self._intakes.get(peer)
        if intake is not None:
            intake.take([hash for hash, _ in found], [raw for _, raw in found])

    def on_chain_event(self, event: ChainEvent) -> None:
        """Stop fetching transactions that are in a block."""
        if not len(self._fetcher):
            return
        for block in event.added if isinstance(event, Reorged) else event.blocks:
            for transaction in block.body.transactions:
                self._fetcher.arrived(transaction.hash)

    def forget_known(self) -> None:
        """Forget which transactions were recently received, after synchronisation, so that peers can send
        them again.
        """
        self._seen.clear()
        for peer in self._peers:
            peer.known_transactions.clear()

    # --- connections ----------------------------------------------------------------------------

    def joined(self, peer: EthPeer) -> None:
        """Create the intake of a new peer, and announce the pool to this peer after `INTRODUCE_S` seconds."""
        self._intakes[peer] = TransactionIntake(
            peer,
            self._pool,
            self._seen,
            self._lane,
            self._fetcher.arrived,
            lambda: None if self._is_member(peer) else self._unknown_share,
            lambda: len(self._fetcher) > 0,
        )
        if len(self._pool):
            peer.peer.spawn(self._introduce(peer))

    def left(self, peer: EthPeer) -> None:
        """Remove a disconnected peer and its announcements."""
        self._fetcher.left(peer)
        self._intakes.pop(peer, None)
        self._named.pop(peer.peer, None)

    async def _introduce(self, peer: EthPeer) -> None:
        await asyncio.sleep(INTRODUCE_S)
        for items in _chunks(self._pool.transactions(), MAX_HASHES):
            self._announce(peer, [item for item in items if item.hash not in peer.known_transactions])
            await asyncio.sleep(0)

    # --- messages to peers ----------------------------------------------------------------------

    def _on_pool_event(self, event: PoolEvent) -> None:
        if not isinstance(event, Added):
            if event.reason is DropReason.EVICTED:
                for item in event.transactions:
                    self._seen.discard(item.hash)
            return
        self._latest = event.transactions[-1].sequence
        self._schedule_announcement()
        if len(self._peers):
            self._fresh.extend(event.transactions)
            if not self._is_due:
                self._is_due = True
                loop = asyncio.get_running_loop()
                is_busy = self._is_busy and loop.time() < self._passed_at + BUSY_COLLECT_S
                loop.call_later(BUSY_COLLECT_S if is_busy else COLLECT_S, self._pass_on)

    def _schedule_announcement(self) -> None:
        if not self._is_announcement_scheduled:
            self._is_announcement_scheduled = True
            asyncio.get_running_loop().call_later(ANNOUNCE_AGAIN_S, self._announce_again, self._latest)

    def _announce_again(self, waited: int) -> None:
        """Announce old executable transactions again. `waited` is the highest sequence number that counts as old."""
        self._is_announcement_scheduled = False
        if not len(self._pool):
            return
        self._schedule_announcement()
        best = islice(self._pool.best(0), MAX_HASHES)
        old = list(islice((item for item in best if item.sequence <= waited), MAX_REMINDED))
        for peer in list(self._peers) if old else ():
            self._announce(peer, old)

    def _pass_on(self) -> None:
        self._is_due = False
        fresh, self._fresh = self._fresh, []
        now = asyncio.get_running_loop().time()
        self._is_busy = len(fresh) >= BUSY_RATE * (now - self._passed_at)
        self._passed_at = now
        peers = list(self._peers)
        if not peers or not fresh:
            return
        # choose at random the peers that get transactions in full, so that over time every peer gets some
        self._random.shuffle(peers)
        in_full = max(1, isqrt(len(peers)))
        makers = [peer for peer in peers if peer.peer.validator_address in self._makers]
        hashes = {item.hash for item in fresh}
        # look up the known transactions before sending, because sending marks a transaction as known to the peer
        known_to = {peer: peer.known_transactions.among(hashes) for peer in peers}
        sources = {maker: known_to[maker] for maker in makers if known_to[maker]}
        urged = makers[:MAX_MAKERS]
        # most peers know all or none of the transactions, so peers share one list and its messages, and a node that
        # sends nothing computes neither
        light = cache(lambda: [item for item in fresh if _is_light(item)])
        shared = cache(lambda: _messages(light()))
        urgent_hashes = cache(lambda: _urgent(light(), sources.values()))
        later: list[tuple[EthPeer, Sequence[PooledTransaction]]] = []
        for peer in peers:
            known = known_to[peer]
            unknown = _without(fresh, known, len(known) == len(hashes))
            if len(makers) <= MAX_MAKERS and peer in makers and unknown:
                served = self._served(peer, sources)
                if served:
                    is_whole = len(served) == len(hashes)
                    later.append((peer, unknown if is_whole else [item for item in unknown if item.hash in served]))
                    unknown = _without(unknown, served, is_whole)
            if not unknown:
                continue
            if in_full > 0:
                in_full -= 1
                is_shared = unknown is fresh
                self._send(peer, shared() if is_shared else _messages([one for one in unknown if _is_light(one)]))
                unknown = [item for item in unknown if not _is_light(item)]
            elif peer in urged and (urgent := urgent_hashes()):
                is_shared = unknown is fresh and len(urgent) == len(light())
                self._send(peer, shared() if is_shared else _messages([one for one in unknown if one.hash in urgent]))
                unknown = [item for item in unknown if item.hash not in urgent]
            self._announce(peer, unknown)
        if later:
            asyncio.get_running_loop().call_later(RELAY_LATER_S, self._announce_missing, later)

    def _served(self, peer: EthPeer, sources: Mapping[EthPeer, set[Hash32]]) -> set[Hash32]:
        """Return the hashes that a block producer gets from other producers. `sources` has the hashes that each
        producer has sent to this node.
        """
        linked = [known for maker, known in sources.items() if self.are_linked(maker.peer, peer.peer)]
        return linked[0] if len(linked) == 1 else set[Hash32]().union(*linked)

    def _announce_missing(self, later: Sequence[tuple[EthPeer, Sequence[PooledTransaction]]]) -> None:
        """Announce to each peer those of its transactions that are still in the pool and that the peer is not known to
        have. Usually a block already contains all transactions in `later`.
        """
        # most peers share one list, so look only once for each list which of its transactions are left
        left: dict[int, list[PooledTransaction]] = {}
        for peer, items in later:
            rest = left.get(id(items))
            if rest is None:
                rest = left[id(items)] = self._pool.those_left(items)
            if rest:
                known = peer.known_transactions
                self._announce(peer, [item for item in rest if item.hash not in known])

    def _send(self, peer: EthPeer, messages: Iterable[_TransactionsMessage]) -> None:
        for message in messages:
            if self.name_senders is not None and peer.peer.validator_address in self._makers:
                self.name_senders(peer.peer, message.senders)
            if peer.send(Code.TRANSACTIONS, message.payload):
                peer.known_transactions.update(message.hashes)
                self.sent += len(message.hashes)

    def _weight(self, item: PooledTransaction) -> int:
        """Return the size of a transaction in its network form, in bytes. 0 for a blob transaction whose blobs the pool
        no longer has.
        """
        if item.transaction.type != BLOB_TYPE:
            return item.size
        return len(self._pool.network_form(item) or b"")

    def _announce(self, peer: EthPeer, items: Sequence[PooledTransaction]) -> None:
        for some in _chunks([item for item in items if self._weight(item)], MAX_HASHES):
            hashes = [item.hash for item in some]
            types = bytes(item.transaction.type for item in some)
            message = TransactionHashes(types, list(map(self._weight, some)), hashes)
            if peer.send(Code.NEW_POOLED_TRANSACTION_HASHES, peer.version.write_hashes(message)):
                peer.known_transactions.update(hashes)
                self.announced_out += len(hashes)


def _urgent(light: Sequence[PooledTransaction], known_to: Iterable[Set[Hash32]]) -> Set[Hash32]:
    """Return the hashes of transactions that no block producer is known to have. `known_to` has the hashes that each
    producer knows.
    """
    return {item.hash for item in light}.difference(*known_to)


def _without(items: Sequence[PooledTransaction], hashes: Set[Hash32], is_whole: bool) -> Sequence[PooledTransaction]:
    """Return the transactions whose hash is not in `hashes`: the same list if `hashes` is empty. `is_whole` means that
    `hashes` has all of them.
    """
    if is_whole:
        return ()
    return [item for item in items if item.hash not in hashes] if hashes else items


def _messages(items: Sequence[PooledTransaction]) -> list[_TransactionsMessage]:
    """Return the messages that have these transactions in full."""
    messages = []
    some: list[PooledTransaction] = []
    size = 0
    for item in items:
        if size + item.size > _MESSAGE and some:
            messages.append(_message(some))
            some, size = [], 0
        some.append(item)
        size += item.size
    if some:
        messages.append(_message(some))
    return messages


def _message(items: Sequence[PooledTransaction]) -> _TransactionsMessage:
    payload = join_transactions([item.transaction.raw for item in items])
    return _TransactionsMessage(payload, [item.hash for item in items], b"".join([item.sender for item in items]))


def _is_light(item: PooledTransaction) -> bool:
    """Whether a transaction is sent in full to peers that have not requested it: a small transaction without blobs."""
    return item.size <= LARGE and item.transaction.type != BLOB_TYPE


def _chunks(items: Sequence[PooledTransaction], size: int) -> Iterator[Sequence[PooledTransaction]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
