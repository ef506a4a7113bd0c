"""`FloodGuard`: throttles inbound handshakes while the permission rules refuse many nodes (decision 133).

The rules can only be checked after Hello, and a handshake up to Hello costs half a millisecond of key agreements and
signatures. When the rules refuse many nodes, this node first decrypts only the auth message, which names the caller's
node id. Decrypting costs a tenth of a handshake. Known nodes then continue with the handshake; unknown nodes continue
only when they dial a second time. Honest nodes redial after one to three seconds. A flood that uses a new key for each
attempt never redials with the same key, and a reused key is remembered as refused.

The auth message does not prove the node id. An attacker with another node's id fails later in the handshake.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar

from ophion.peers.token_bucket import TokenBucket

ADDRESS_BURST: Final = 20
"""Burst of refusals from one address after which nodes at this address must send their node id first."""
_ADDRESS_PER_S: Final = 2
_BURST: Final = 100
"""Burst of refusals from all addresses after which every inbound node must send its node id first."""
_PER_S: Final = 50
_REDIALS_BURST: Final = 10
_REDIALS_PER_S: Final = 10
"""Limit of handshakes per second with unknown nodes that redial. Refused nodes that redial have a separate limit of the
same rate.
"""
_AUTH_BURST: Final = 25
_AUTH_PER_S: Final = 250
"""Limit of auth messages decrypted per second. Decrypting this many takes a few percent of a core. Further sockets are
closed.
"""
_LASTING_S: Final = 1.0
"""Seconds after the last refusal for which the flood counts as active."""
RETURN_S: Final = 0.5
"""Minimum seconds before an unknown node may redial."""
REFUSED_S: Final = 30.0
"""Minimum seconds before a refused node may redial, unless the permission rules change."""
_MAX_ADDRESSES: Final = 1024
_MAX_CALLERS: Final = 8192
"""Limit of remembered callers. Large enough to remember all callers of a flood until honest nodes redial."""
_MAX_ACCEPTED: Final = 1024

K = TypeVar("K")
V = TypeVar("V")


class FloodGuard:
    """Limits inbound handshakes during a flood, by rate limits and by the callers seen recently. All tables are bounded
    and evict their oldest entry first.
    """

    __slots__ = (
        "_accepted",
        "_addresses",
        "_all",
        "_auth_messages",
        "_redials",
        "_refused",
        "_refused_redials",
        "_rules",
        "_unknown",
        "_until",
    )

    def __init__(self) -> None:
        self._all = TokenBucket(_BURST, _PER_S)
        self._addresses: OrderedDict[str, TokenBucket] = OrderedDict()
        self._auth_messages = TokenBucket(_AUTH_BURST, _AUTH_PER_S)
        self._until = 0.0
        self._redials = TokenBucket(_REDIALS_BURST, _REDIALS_PER_S)
        self._refused_redials = TokenBucket(_REDIALS_BURST, _REDIALS_PER_S)
        self._rules = 0
        """Number of changes of the permission rules so far."""
        self._refused: OrderedDict[bytes, tuple[float, int]] = OrderedDict()
        """By node id: the time when the refusal ends, and the number of rule changes at the refusal."""
        self._unknown: OrderedDict[bytes, float] = OrderedDict()
        self._accepted: OrderedDict[bytes, None] = OrderedDict()

    def refused(self, ip: str, node_id: bytes, now: float) -> None:
        """Record that the permission rules refused a node."""
        self._all.spend(1, now)
        allowance = self._addresses.get(ip)
        if allowance is None:
            allowance = TokenBucket(ADDRESS_BURST, _ADDRESS_PER_S)
        allowance.spend(1, now)
        _put(self._addresses, ip, allowance, _MAX_ADDRESSES)
        _put(self._refused, node_id, (now + REFUSED_S, self._rules), _MAX_CALLERS)
        self._accepted.pop(node_id, None)
        if self.needs_early_node_id(ip, now):
            self._until = now + _LASTING_S

    def accepted(self, node_id: bytes) -> None:
        """Record a node that became a peer, so that the node may reconnect during a flood."""
        _put(self._accepted, node_id, None, _MAX_ACCEPTED)
        self._refused.pop(node_id, None)
        self._unknown.pop(node_id, None)

    def reconsider(self) -> None:
        """Record that the permission rules may have changed. With a permissioning contract, this is called for every
        block.
        """
        self._rules += 1

    def needs_early_node_id(self, ip: str, now: float, undecided: int = 0) -> bool:
        """Whether callers from this address must send their node id before the full handshake.

        `undecided` is the number of pending handshakes from the address. Pending handshakes count as refusals.
        """
        if self._all.left(now) < 1:
            return True
        allowance = self._addresses.get(ip)
        return allowance is not None and allowance.left(now) - undecided < 1

    def is_active(self, now: float) -> bool:
        """Whether a flood is active. The listener then accepts in batches."""
        return now < self._until

    def may_decrypt(self, now: float) -> bool:
        """Count one more auth message. Returns whether the rate limit allows this node to decrypt it."""
        return _take(self._auth_messages, now)

    def admits(self, node_id: bytes, now: float) -> bool:
        """Whether a node may continue with the handshake. Remembers an unknown node, whose next dial may then pass."""
        is_admitted = node_id in self._accepted or self._may_redial(node_id, now)
        if not is_admitted:
            self._until = now + _LASTING_S
        return is_admitted

    def _may_redial(self, node_id: bytes, now: float) -> bool:
        refusal = self._refused.get(node_id)
        if refusal is not None:
            until, rules = refusal
            # all refused nodes share one token bucket, so that they use up no tokens of unknown nodes
            return (until <= now or rules != self._rules) and _take(self._refused_redials, now)
        since = self._unknown.get(node_id)
        if since is None:
            _put(self._unknown, node_id, now, _MAX_CALLERS)
            return False
        return now - since >= RETURN_S and _take(self._redials, now)


def _take(allowance: TokenBucket, now: float) -> bool:
    """Take one token of a rate limit. Returns False if no token is available."""
    return allowance.left(now) >= 1 and allowance.spend(1, now)


def _put(table: OrderedDict[K, V], key: K, value: V, max_entries: int) -> None:
    table[key] = value
    table.move_to_end(key)
    while len(table) > max_entries:
        table.popitem(last=False)
