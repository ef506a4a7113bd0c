"""Compatibility profiles (`--compat`): defaults of other clients, in one table.

A profile sets only options that no other source sets. `rpc.discover` shows the profile in `info.x-compat`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from ophion.runtime.options import Given, OptionSource, OptionSpec


class Compat(Enum):
    """Values of `--compat`."""

    PANTHEON_1_2 = "pantheon-1.2"
    BESU_21 = "besu-21"
    BESU_26 = "besu-26"
    GETH_1_13 = "geth-1.13"
    GOQUORUM = "goquorum"


def read_compat(text: str) -> Compat:
    """Read the name of a profile."""
    found = next((one for one in Compat if one.value == text.lower()), None)
    if found is None:
        raise ValueError(f"expected one of [{', '.join(one.value for one in Compat)}] but was '{text}'")
    return found


_ETHER: Final = str(10**18)

COMPAT_TABLE: Final[Mapping[str, Mapping[Compat, str]]] = {
    "rpc-error-wording": {
        Compat.PANTHEON_1_2: "original",
        Compat.BESU_21: "original",
        Compat.BESU_26: "original",
        Compat.GETH_1_13: "geth",
        Compat.GOQUORUM: "geth",
    },
    "rpc-answer-fields": {
        Compat.PANTHEON_1_2: "besu",
        Compat.BESU_21: "besu",
        Compat.GETH_1_13: "geth",
        Compat.GOQUORUM: "goquorum",
    },
    "rpc-http-error-status-400": {Compat.PANTHEON_1_2: "true"},
    "dev-fork": {Compat.PANTHEON_1_2: "petersburg", Compat.BESU_21: "petersburg", Compat.BESU_26: "london"},
    "dev-chain-id": {
        Compat.PANTHEON_1_2: "2018",
        Compat.BESU_21: "1337",
        Compat.BESU_26: "1337",
        Compat.GETH_1_13: "1337",
        Compat.GOQUORUM: "1337",
    },
    "dev-base-fee": {Compat.BESU_26: "0"},
    "min-gas-price": {
        Compat.PANTHEON_1_2: "1000",
        Compat.BESU_21: "1000",
        Compat.BESU_26: "1000",
        Compat.GETH_1_13: "1",
        Compat.GOQUORUM: "0",
    },
    "max-peers": {
        Compat.PANTHEON_1_2: "25",
        Compat.BESU_21: "25",
        Compat.BESU_26: "25",
        Compat.GETH_1_13: "50",
        Compat.GOQUORUM: "50",
    },
    "rpc-tx-feecap": {Compat.BESU_21: _ETHER, Compat.BESU_26: _ETHER, Compat.GETH_1_13: _ETHER},
    "rpc-max-logs-range": {Compat.BESU_26: "5000"},
}
"""Options, each with its value by profile. If a profile has no value, Ophion's default applies."""

_DEV_PREFIX: Final = "dev-"


def compat_settings(given: Iterable[Given], specs: Iterable[OptionSpec]) -> Iterator[Given]:
    """Yield the settings of the profile that `--compat` names. Without a genesis file, options of the dev network are
    included.
    """
    chosen = _chosen(given)
    if chosen is None:
        return
    by_name = {name: spec for spec in specs for name in spec.names}
    has_genesis_file = any(item.spec.name == "genesis-file" for item in given)
    for name, values in COMPAT_TABLE.items():
        if chosen in values and name in by_name and not (has_genesis_file and name.startswith(_DEV_PREFIX)):
            label = f"option of --compat={chosen.value}"
            yield Given(by_name[name], (values[chosen],), OptionSource.PROFILE, label)


def _chosen(given: Iterable[Given]) -> Compat | None:
    found = [item for item in given if item.spec.name == "compat"]
    if not found:
        return None
    text = min(found, key=lambda item: item.source.value).texts
    # return None for an unknown name, because the option loader reports unknown names
    return next((one for one in Compat if text and one.value == text[0].lower()), None)
