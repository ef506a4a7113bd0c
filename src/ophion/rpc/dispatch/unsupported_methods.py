"""Methods of Besu, GoQuorum and geth that Ophion does not have, with the reason shown in the error.

Every method of Besu 1.2 to 26.8 is either in the method table or here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ENGINE: Final = "Ophion is for private networks and needs no consensus client; there is no engine API"
_GOQUORUM: Final = "GoQuorum's private transactions are not supported; use eea_sendRawTransaction"
_ACCESS_LISTS: Final = "blocks of the supported forks have no block access list (EIP-7928)"

_NAMES: Final[Mapping[str, str]] = {
    "eth_getQuorumPayload": _GOQUORUM,
    "eth_sendRawPrivateTransaction": _GOQUORUM,
    "eth_getBlockAccessList": _ACCESS_LISTS,
    "debug_getRawBlockAccessList": _ACCESS_LISTS,
    "testing_buildBlockV1": "use `ophion dev`, whose evm_mine and anvil_mine build blocks on request",
}
_GROUPS: Final[Mapping[str, str]] = {"engine": _ENGINE, "goquorum": _GOQUORUM}


def reason_declined(name: str) -> str | None:
    """Return why Ophion lacks a method of another client. Returns None for an unknown method name."""
    return _NAMES.get(name) or _GROUPS.get(name.partition("_")[0])
