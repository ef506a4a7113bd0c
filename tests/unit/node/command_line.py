"""Parses command lines of a node with the parser of `ophion`."""

from __future__ import annotations

from collections import deque

from ophion.node.config import NodeConfig
from ophion.runtime.options import LoadedConfig, OptionTexts, load, read_flag, specs_of

OPTIONS = {flag: spec for spec in specs_of(NodeConfig) for flag in spec.declaration.flags}


def loaded(*tokens: str) -> LoadedConfig[NodeConfig]:
    """Return the configuration that these flags set."""
    rest = deque(tokens)
    given: list[OptionTexts] = []
    while rest:
        given.append(read_flag(rest.popleft(), rest, OPTIONS))
    return load(NodeConfig, given)
