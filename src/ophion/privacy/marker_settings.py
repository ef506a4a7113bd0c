"""Options and enclave keys that decide which markers the node reads, and warnings when these settings change."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from ophion.enclave.encoding import base64_text
from ophion.enclave.interface import KEY_SIZE
from ophion.native.store import Store
from ophion.primitives.types import Address
from ophion.runtime.thread_pools import Lane

log = logging.getLogger(__name__)

_MARKERS_KEY: Final = "private-markers"
"""Database key of the settings by which the node finds markers: the address of the precompile, and a flag for flexible
groups.
"""
_KEYS_KEY: Final = "enclave-keys"
"""Database key of the concatenated enclave keys with which markers have been read so far."""


async def warn_of_missed_markers(
    store: Store, lane: Lane, precompile: Address, is_flexible: bool, has_followed: bool
) -> None:
    """Before the first block is followed, store the options that identify markers.

    At a later start, warn if the options have changed, because the node does not execute markers that it skipped under
    the old options.
    """
    taken = precompile + bytes([is_flexible])
    known = store.meta(_MARKERS_KEY)
    if known == taken:
        return
    if known is None or not has_followed:
        await lane.run(partial(store.put_meta, _MARKERS_KEY, taken))
        return
    log.warning(
        "the options --privacy-precompiled-address or --privacy-flexible-groups-enabled have changed: earlier"
        " markers that match the new options are not executed. Run `ophion privacy rebuild` to compute private"
        " states again"
    )


def has_new_keys(store: Store, keys: Sequence[bytes]) -> bool:
    """Return whether the enclave has other keys than before. Logs a warning for missing keys."""
    before = known_keys(store)
    gone = [base64_text(key) for key in sorted(before.difference(keys))]
    if gone:
        log.warning("enclave keys are missing, and their private transactions are not executed keys=%s", ",".join(gone))
    return before != set(keys)


async def store_keys(store: Store, lane: Lane, keys: Sequence[bytes]) -> None:
    """Record the keys with which markers have been read."""
    await lane.run(partial(store.put_meta, _KEYS_KEY, b"".join(keys)))


def known_keys(store: Store) -> frozenset[bytes]:
    """Return the enclave keys with which markers have been read so far."""
    known = store.meta(_KEYS_KEY) or b""
    return frozenset(known[at : at + KEY_SIZE] for at in range(0, len(known), KEY_SIZE))
