"""`EtcdVoteStore`: shared votes in an etcd cluster, by gRPC.

The value at `PREFIX/GENESIS-HASH/VALIDATOR` is a `VoteRecord` as JSON. An etcd transaction replaces the value if value
and revision have not changed since this node read them. Otherwise the transaction returns the new value. So a vote
takes one request, and one more request for each node that wrote in between. Transactions pass through the consensus of
the cluster, so a member without a quorum confirms no transaction.

The value at `…/proof` is the proof of preparation that the record names, if its block is small. The transaction that
writes the record writes the proof.

An etcd that was restored from a backup may lack votes that the validator has sent. This process then never signs again:
the record, its revision and the revision of the cluster must not go back. The comparison of values finds a restored
etcd that has reached the same revision with other votes.

A request without a reply may have been executed. Repeating it is safe: the repeated transaction finds the new revision,
and `replacement` accepts a record that equals the stored one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ophion.consensus.bft.vote_record import VoteRecord, is_successor, replacement
from ophion.errors import DecodeError
from ophion.primitives.types import Address, Hash32
from ophion.producer.etcd_messages import (
    RANGE,
    TRANSACTION,
    Entry,
    TransactionReply,
    decode_range_reply,
    decode_transaction_reply,
    encode_range,
    encode_transaction,
)
from ophion.producer.shared_vote_store import VotesUnavailable
from ophion.runtime.grpc_client import GrpcClient, GrpcError

if TYPE_CHECKING:
    import ssl

_Reply = TypeVar("_Reply")

ETCD_TIMEOUT_S: Final = 1.0
"""Timeout of one request to one etcd server. After a timeout, the request goes to another server."""
_MAX_RACES: Final = 16
"""Maximum number of attempts while other nodes write the vote record."""
_MAX_REPLY_BYTES: Final = 2 * 1024 * 1024


class EtcdVoteStore:
    """The vote record of one validator on one chain, stored in etcd."""

    def __init__(
        self,
        endpoints: Sequence[str],
        prefix: str,
        chain: Hash32,
        validator: Address,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Create the client of the vote store. `endpoints` are URLs of the etcd servers; `chain` is the hash of the
        genesis block.
        """
        path = "/".join(part for part in (prefix.strip("/"), f"0x{chain.hex()}", f"0x{validator.hex()}") if part)
        self.name = f"etcd {', '.join(endpoints)} key /{path}"
        self.identity: str | None = f"etcd:/{prefix.strip('/')}"
        self._key = f"/{path}".encode()
        self._block_key = f"/{path}/block".encode()
        self._proof_key = f"/{path}/proof".encode()
        self.keeps_proofs = True
        self.kept_proof: bytes | None = None
        self._clients = [GrpcClient(url, tls, ETCD_TIMEOUT_S, _MAX_REPLY_BYTES) for url in endpoints]
        self._stored: VoteRecord | None = None
        self._entry: Entry | None = None
        """`_stored` as etcd has it. None if the key does not exist."""
        self._revision = 0
        """Highest revision of the cluster that this process has seen."""
        self._loss: str | None = None
        """Why etcd must have lost votes. This process then uses the store no more."""

    async def promise(
        self, wanted: VoteRecord, block: bytes | None = None, *, proof: bytes | None = None
    ) -> VoteRecord | None:
        """Store a record together with the block that the record refers to (`SharedSeals`), or with the proof of the
        prepared block that the record names.
        """
        if self._loss is not None:
            raise VotesUnavailable(self._loss)
        for _ in range(_MAX_RACES):
            stored = self._stored
            record = replacement(stored, wanted)
            if record is not None and record.prepared_round != wanted.prepared_round:
                proof = None  # the record names a later proof of another node
            # write the record, unless an equal record is already stored
            if record is not None and (record == stored or await self._swap(record, block, proof)):
                return None
            if record is None and await self._is_current():
                return self._stored
        raise VotesUnavailable(f"{self.name}: other nodes with this key wrote {_MAX_RACES} times during one vote")

    def close(self) -> None:
        """Close connections. A later vote connects again, because consensus can be stopped and started."""
        for client in self._clients:
            client.disconnect()

    async def block(self) -> bytes | None:
        """Return the block that is stored with the vote record, or None if the block was too large to store."""
        return await self._value(self._block_key)

    async def proof(self) -> bytes | None:
        return await self._value(self._proof_key)

    async def _value(self, key: bytes) -> bytes | None:
        found = await self._call(RANGE, encode_range(key), decode_range_reply)
        return found.value or None if found is not None else None

    async def _swap(self, record: VoteRecord, block: bytes | None, proof: bytes | None) -> bool:
        """Replace the stored record if it is the record that this node knows. Otherwise read the stored record and
        return False.
        """
        value = record.encode()
        puts = [(self._key, value)]
        if block is not None:
            puts.append((self._block_key, block))
        if proof is not None:
            puts.append((self._proof_key, proof))
        reply = await self._transact(puts)
        if reply.succeeded:
            self._stored, self._entry = record, Entry(value, reply.revision)
            self.kept_proof = proof if proof is not None else self.kept_proof
        return reply.succeeded

    async def _is_current(self) -> bool:
        """Whether the stored record is the record that this node knows. Otherwise reads the stored record."""
        return (await self._transact([])).succeeded

    async def _transact(self, puts: Sequence[tuple[bytes, bytes]]) -> TransactionReply:
        seen = self._revision
        request = encode_transaction(self._key, self._entry, puts)
        reply = await self._call(TRANSACTION, request, decode_transaction_reply)
        if reply.revision < seen:
            raise self._lost(f"its revision was {seen} and is {reply.revision}")
        self._revision = max(self._revision, reply.revision)
        if not reply.succeeded:
            self._read(reply.entry)
        return reply

    def _read(self, entry: Entry | None) -> None:
        """Take over the entry that etcd has, unless it shows that etcd has lost votes."""
        try:
            stored = VoteRecord.decode(entry.value) if entry is not None else None
        except DecodeError as error:
            raise VotesUnavailable(f"{self.name}: the stored value is not a vote record ({error})") from error
        known, known_entry = self._stored, self._entry
        if known is not None and (stored is None or not is_successor(known, stored)):
            raise self._lost(f"this node has seen {known}, and etcd has {stored or 'no record'}")
        if known_entry is not None and entry is not None and entry.mod_revision < known_entry.mod_revision:
            raise self._lost(f"the record's revision was {known_entry.mod_revision} and is {entry.mod_revision}")
        self._stored, self._entry = stored, entry

    def _lost(self, reason: str) -> VotesUnavailable:
        self._loss = f"{self.name}: etcd has lost votes: {reason}; stop all nodes of this key and use another prefix"
        return VotesUnavailable(self._loss)

    async def _call(self, method: str, request: bytes, decode: Callable[[bytes], _Reply]) -> _Reply:
        """Call the server that replied last, then the other servers. Raises `VotesUnavailable` if none replies."""
        problems = []
        for client in self._clients.copy():
            try:
                return decode(await client.call(method, request))
            except (GrpcError, DecodeError) as error:
                client.disconnect()
                problems.append(f"{client.url}: {error}")
                self._clients.append(self._clients.pop(self._clients.index(client)))
        raise VotesUnavailable("; ".join(problems))
