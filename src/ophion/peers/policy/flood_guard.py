"""`FloodGuard`: who is heard while many are being refused (decision 133).

The rules about nodes can only be asked after Hello, and by then a handshake has been paid for: half a millisecond of
key agreements and signatures. As long as few are refused that does not matter. When many are, the first message alone
is opened, which costs a tenth of it and names the caller; the handshake goes on for who is known, and for who comes
again. An honest node dials again after a second or three; a flood that makes up a new key for each attempt never does,
and one that does not is known by its keys soon.

The name is not proven at that point. To borrow one leads to a handshake that fails, no further.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar

from ophion.peers.token_bucket import TokenBucket

ADDRESS_BURST: Final = 20
"""Refusals that an address may have at once before callers from there are asked for their names first."""
_ADDRESS_PER_S: Final = 2
_BURST: Final = 100
"""The same for all addresses together: some have very many."""
_PER_S: Final = 50
_RETURNS_BURST: Final = 10
_RETURNS_PER_S: Final = 10
"""Handshakes with those who came again; as many with those who were refused before the rules changed."""
_NAMES_BURST: Final = 25
_NAMES_PER_S: Final = 250
"""First messages that are opened: some hundredths of a core. Beyond that nobody is heard; who is honest dials again."""
_LASTING_S: Final = 1.0
"""So long after somebody was turned away there is a crowd."""
RETURN_S: Final = 0.5
"""Who is unknown may come again after this."""
REFUSED_S: Final = 30.0
"""Who was refused by the rules may come again after this, or when they change."""
_ADDRESSES: Final = 1024
_CALLERS: Final = 8192
"""As many as a flood brings in the few seconds after which an honest node dials again."""
_GUESTS: Final = 1024

K = TypeVar("K")
V = TypeVar("V")


class FloodGuard:
    """What is remembered of those who called; everything bounded, the oldest forgotten first."""

    __slots__ = (
        "_addresses",
        "_all",
        "_guests",
        "_names",
        "_pardons",
        "_refused",
        "_returns",
        "_rules",
        "_unknown",
        "_until",
    )

    def __init__(self) -> None:
        self._all = TokenBucket(_BURST, _PER_S)
        self._addresses: OrderedDict[str, TokenBucket] = OrderedDict()
        self._names = TokenBucket(_NAMES_BURST, _NAMES_PER_S)
        self._until = 0.0
        self._returns = TokenBucket(_RETURNS_BURST, _RETURNS_PER_S)
        self._pardons = TokenBucket(_RETURNS_BURST, _RETURNS_PER_S)
        self._rules = 0
        """How often they have changed."""
        self._refused: OrderedDict[bytes, tuple[float, int]] = OrderedDict()
        """Until when, and by which rules."""
        self._unknown: OrderedDict[bytes, float] = OrderedDict()
        self._guests: OrderedDict[bytes, None] = OrderedDict()

    def refused(self, ip: str, node_id: bytes, now: float) -> None:
        """The rules had something against this node."""
        self._all.spend(1, now)
        allowance = self._addresses.get(ip)
        if allowance is None:
            allowance = TokenBucket(ADDRESS_BURST, _ADDRESS_PER_S)
        allowance.spend(1, now)
        _keep(self._addresses, ip, allowance, _ADDRESSES)
        _keep(self._refused, node_id, (now + REFUSED_S, self._rules), _CALLERS)
        self._guests.pop(node_id, None)
        if self.presses(ip, now):
            self._until = now + _LASTING_S

    def accepted(self, node_id: bytes) -> None:
        """It became a peer, and may come again whatever others do."""
        _keep(self._guests, node_id, None, _GUESTS)
        self._refused.pop(node_id, None)
        self._unknown.pop(node_id, None)

    def reconsider(self) -> None:
        """The rules have changed, or may have: they do so with every block where a contract has them."""
        self._rules += 1

    def presses(self, ip: str, now: float, undecided: int = 0) -> bool:
        """Whether callers from this address have to say their names first.

        `undecided` handshakes with callers from there are under way, and may end as the last ones did.
        """
        if self._all.left(now) < 1:
            return True
        allowance = self._addresses.get(ip)
        return allowance is not None and allowance.left(now) - undecided < 1

    def is_there(self, now: float) -> bool:
        """Whether there is a crowd at all: nobody is hurried then."""
        return now < self._until

    def has_time(self, now: float) -> bool:
        """Whether one more first message may be opened."""
        return _take(self._names, now)

    def admits(self, node_id: bytes, now: float) -> bool:
        """Whether somebody of this name, in whose favour nothing else speaks, may go on."""
        is_admitted = node_id in self._guests or self._comes_again(node_id, now)
        if not is_admitted:
            self._until = now + _LASTING_S
        return is_admitted

    def _comes_again(self, node_id: bytes, now: float) -> bool:
        refusal = self._refused.get(node_id)
        if refusal is not None:
            until, rules = refusal
            # those who were never refused do not wait behind those who were
            return (until <= now or rules != self._rules) and _take(self._pardons, now)
        since = self._unknown.get(node_id)
        if since is None:
            _keep(self._unknown, node_id, now, _CALLERS)
            return False
        return now - since >= RETURN_S and _take(self._returns, now)


def _take(allowance: TokenBucket, now: float) -> bool:
    """One, if it is there."""
    return allowance.left(now) >= 1 and allowance.spend(1, now)


def _keep(table: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    table[key] = value
    table.move_to_end(key)
    while len(table) > most:
        table.popitem(last=False)
