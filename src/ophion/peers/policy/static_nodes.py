"""Reads static-nodes.json, the list of static peers (networking.md 2.7).

The file is a JSON array of enode URLs. The node reads the file once at start; `admin_addPeer` and `admin_removePeer` do
not change it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from ophion.errors import ConfigError
from ophion.primitives.enode import Enode, EnodeError
from ophion.runtime.operator_files import content_of

NAME: Final = "static-nodes.json"


def read_static_nodes(path: Path, *, must_exist: bool, host_names: bool = False) -> tuple[Enode, ...]:
    """Return the nodes in the file without duplicates; raises `ConfigError` with the file and the error.

    A missing or empty file means no static peers. With `must_exist`, a missing file is an error. With `host_names`,
    URLs may have host names.
    """
    try:
        content = content_of(path)
    except FileNotFoundError:
        if must_exist:
            raise ConfigError(f"Static nodes file {path} does not exist.") from None
        return ()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"Static nodes file {path} cannot be read: {reason}") from None
    if not content.strip():
        return ()
    try:
        urls = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"Static nodes file {path} is not valid JSON: {error}") from None
    if not isinstance(urls, list):
        raise ConfigError(f"Static nodes file {path} must hold a JSON array of enode URLs.")
    nodes: dict[Enode, None] = {}
    for number, url in enumerate(urls, 1):
        nodes[_node(path, number, url, host_names)] = None
    return tuple(nodes)


def _node(path: Path, number: int, url: object, host_names: bool) -> Enode:
    where = f"Static nodes file {path}, entry {number}"
    if not isinstance(url, str):
        raise ConfigError(f"{where}: an enode URL is expected.")
    try:
        enode = Enode.parse(url, host_names=host_names)
    except EnodeError as error:
        raise ConfigError(f"{where}: {error}") from None
    if not enode.tcp_port:
        raise ConfigError(f"{where}: the listening port is 0, so this node cannot dial it.")
    return enode
