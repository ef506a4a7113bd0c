"""`ValidatorNodes`: the nodes that have proved for which validator they act.

A validator can sign proofs for any number of node ids. So only `MAX_NODES` nodes per validator count, and further nodes
stay unknown peers. Nodes of current validators are remembered after they disconnect, because they have reserved slots.
"""

from __future__ import annotations

from typing import Final

from ophion.primitives.types import Address

MAX_NODES: Final = 8
"""Limit of nodes per validator that get the rate limits of validators."""


class ValidatorNodes:
    """Nodes that act for validators, by the address of the node key."""

    def __init__(self) -> None:
        self._validators: dict[Address, Address] = {}
        self._nodes: dict[Address, dict[Address, bool]] = {}
        """Nodes by validator. The value is True while the node is connected."""

    def validator_of(self, node: Address) -> Address:
        """Return the validator for which a node acts.

        For a node that has proved no validator, return the node's own address.
        """
        return self._validators.get(node, node)

    def has_nodes(self, validator: Address) -> bool:
        """Whether the validator has nodes whose node key is not the validator key."""
        return validator in self._nodes

    def connected(self, node: Address, validator: Address) -> bool:
        """Add a connected node. Returns False if the validator already has `MAX_NODES` connected nodes."""
        self._forget(node)
        nodes = self._nodes.setdefault(validator, {})
        if len(nodes) >= MAX_NODES:
            unused = next((one for one, is_connected in nodes.items() if not is_connected), None)
            if unused is None:
                return False
            self._forget(unused)
            nodes = self._nodes.setdefault(validator, {})
        nodes[node] = True
        self._validators[node] = validator
        return True

    def disconnected(self, node: Address, is_kept: bool) -> None:
        """Record that a node has disconnected. If `is_kept` is set, the node stays assigned to its validator."""
        validator = self._validators.get(node)
        if validator is None:
            return
        if is_kept:
            self._nodes[validator][node] = False
        else:
            self._forget(node)

    def _forget(self, node: Address) -> None:
        validator = self._validators.pop(node, None)
        if validator is not None:
            nodes = self._nodes[validator]
            del nodes[node]
            if not nodes:
                del self._nodes[validator]
