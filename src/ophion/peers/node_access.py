"""`NodeAccess`: decides which nodes may be dialled and discovered, and which nodes have quotas of their own."""

from __future__ import annotations

import logging
from typing import Final

from ophion.peers.discovery.discovery import Discovery
from ophion.peers.peer import Peer
from ophion.peers.peer_table import Peers
from ophion.peers.policy.addresses import is_within
from ophion.peers.policy.admission import Admission
from ophion.peers.policy.dial_plan import DialPlan
from ophion.peers.settings import PeerSettings
from ophion.peers.token_bucket import TokenBucket
from ophion.permissions.node_rules import Action, NodeRules
from ophion.primitives.enode import Enode
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

_RULES_BURST_S: Final = 0.2
_RULES_SHARE: Final = 0.05
"""Maximum share of the event loop's time for permission checks of unknown nodes that send Pings."""
_CATCH_UP: Final = (
    "; the contract is called at the latest block of this node. If this node is behind, set --bootnodes to permitted"
    " nodes: connections with them are allowed until it has caught up"
)


class NodeAccess:
    """Combines subnets, bans, permissions, the dial plan and the connected peers."""

    def __init__(
        self,
        settings: PeerSettings,
        rules: NodeRules,
        plan: DialPlan,
        admission: Admission,
        peers: Peers,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._rules = rules
        self._plan = plan
        self._admission = admission
        self._peers = peers
        self._clock = clock
        self._rules_time = TokenBucket(_RULES_BURST_S, _RULES_SHARE)
        self._refused_static: set[bytes] = set()
        """Static peers that the permission rules forbid this node to dial. Each such peer is logged once."""
        self.discovery: Discovery | None = None
        """The discovery protocol. None if discovery is disabled."""

    def forget(self, node_id: bytes) -> None:
        """Forget that a static peer was refused. Called when the peer is removed."""
        self._refused_static.discard(node_id)

    def may_discover(self, enode: Enode, action: Action) -> bool:
        """Whether subnets, bans and permissions allow a discovery action for a node. Pings of unknown nodes share a
        limit on the time for such checks.
        """
        settings = self._settings
        if not is_within(enode.ip, settings.subnets) or enode.node_id in settings.banned:
            return False
        if action is not Action.ACCEPT_PING or self.is_expected(enode.node_id):
            return self._rules.refusal_of(enode, action) is None
        began = self._clock.monotonic()
        if self._rules_time.left(began) <= 0:
            return False
        refusal = self._rules.refusal_of(enode, action)
        ended = self._clock.monotonic()
        self._rules_time.spend(ended - began, ended)
        return refusal is None

    def may_dial(self, enode: Enode) -> bool:
        """Whether the dialer may dial a node, by subnets, bans and permissions."""
        now = self._clock.monotonic()
        if not is_within(enode.ip, self._settings.subnets) or self._admission.is_banned(enode.node_id, now):
            return False
        refusal = self._rules.refusal_of(enode, Action.DIAL)
        if refusal is None:
            self._refused_static.discard(enode.node_id)
        elif self._plan.is_static(enode.node_id) and enode.node_id not in self._refused_static:
            # log one warning per refused static peer, until the permission rules permit the peer again
            self._refused_static.add(enode.node_id)
            hint = _CATCH_UP if self._rules.contract is not None and not self._rules.has_bootnodes else ""
            log.warning("static node not dialled enode=%s reason=%s%s", enode, refusal, hint)
        else:
            log.debug("not dialled enode=%s reason=%s", enode, refusal)
        return refusal is None

    def is_known_address(self, ip: str) -> bool:
        """Whether an IP belongs to a static node, a bootnode or a connected network member (validator or permitted
        node).
        """
        if self._plan.is_static_address(ip) or any(enode.ip == ip for enode in self._settings.bootnodes):
            return True
        return any(peer.remote[0] == ip and self.has_own_quota(peer.id) for peer in self._peers)

    def has_own_quota(self, node_id: bytes) -> bool:
        """Whether a node has a quota of its own, instead of a share in the quota of unknown nodes.

        True for static peers, bootnodes, validators and permitted nodes.
        """
        return self._plan.has_reserved_slot(node_id) or self._rules.names(node_id)

    def is_expected(self, node_id: bytes) -> bool:
        """Whether a node id is known: it has a reserved slot, is connected, is permitted, or is in the discovery
        table.
        """
        return (
            self._plan.has_reserved_slot(node_id)
            or self._peers.by_id(node_id) is not None
            or self._rules.names(node_id)
            or (self.discovery is not None and self.discovery.buckets.get(node_id) is not None)
        )

    def listener_of(self, peer: Peer) -> Enode:
        """Return a peer's enode with its listen port. If Hello has no port, the port comes from the static peers
        or from discovery.
        """
        if peer.enode.tcp_port:
            return peer.enode
        found = None if self.discovery is None else self.discovery.buckets.get(peer.id)
        known = (*self._plan.static_nodes, *(() if found is None else (found,)))
        same = (one for one in known if (one.node_id, one.ip) == (peer.id, peer.enode.ip))
        return next(same, peer.enode)
