"""Reports the paths of a node that another user cannot use: `--print-paths-and-exit`.

The entry point of a container starts as root. The entry point gives these paths to the user of the node, then starts
the node as this user.
"""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ophion.node.config import NodeConfig

BESU_USER: Final = "besu"
_READ, _WRITE = 0o4, 0o2


class UnknownUser(Exception):
    """Raised for a user that this machine does not have."""


def missing_access(config: NodeConfig, user: str, *others: str) -> Iterator[str]:
    """Yield a line `PERMISSION_CHECK_PATH:PATH:READ|READ_WRITE` for each path that lacks permissions of the user.

    The paths are the data path, even if it does not exist yet, and the genesis file. Raises `UnknownUser`.
    """
    if others:
        raise UnknownUser(f"--print-paths-and-exit takes one user, not {1 + len(others)}")
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise UnknownUser(f"this machine has no user {user!r}: give another one to --print-paths-and-exit") from None
    groups = {found.pw_gid, *(group.gr_gid for group in grp.getgrall() if user in group.gr_mem)}
    data_path = Path(os.path.abspath(config.data.data_path))
    if not data_path.exists() or not _has_access(data_path, found.pw_uid, groups, _READ | _WRITE):
        yield f"PERMISSION_CHECK_PATH:{data_path}:READ_WRITE"
    genesis_file = config.network.genesis_file
    if genesis_file is not None:
        path = Path(os.path.abspath(genesis_file))
        if path.exists() and not _has_access(path, found.pw_uid, groups, _READ):
            yield f"PERMISSION_CHECK_PATH:{path}:READ"


def _has_access(path: Path, user: int, groups: set[int], wanted: int) -> bool:
    state = path.stat()
    shift = 6 if state.st_uid == user else 3 if state.st_gid in groups else 0
    return (state.st_mode >> shift) & wanted == wanted
