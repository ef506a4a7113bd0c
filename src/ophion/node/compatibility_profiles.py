"""Compatibility profiles (`--compat`): defaults of other clients, in one table.

A profile sets only options that no other source sets. `rpc.discover` shows the profile in `info.x-compat`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from ophion.runtime.options import OptionSource, OptionSpec, OptionTexts


class CompatibilityProfile(Enum):
    """Values of `--compat`: the client whose behaviour the node copies."""

    PANTHEON_1_2 = "pantheon-1.2"
    BESU_21 = "besu-21"
    BESU_26 = "besu-26"
    GETH_1_13 = "geth-1.13"
    GOQUORUM = "goquorum"


def read_compat(text: str) -> CompatibilityProfile:
    """Read the name of a profile."""
    found = next((one for one in CompatibilityProfile if one.value == text.lower()), None)
    if found is None:
        raise ValueError(f"expected one of [{', '.join(one.value for one in CompatibilityProfile)}] but was '{text}'")
    return found


_ETHER: Final = str(10**18)

COMPAT_TABLE: Final[Mapping[str, Mapping[CompatibilityProfile, str]]] = {
    "rpc-error-wording": {
        CompatibilityProfile.PANTHEON_1_2: "original",
        CompatibilityProfile.BESU_21: "original",
        CompatibilityProfile.BESU_26: "original",
        CompatibilityProfile.GETH_1_13: "geth",
        CompatibilityProfile.GOQUORUM: "geth",
    },
    "rpc-answer-fields": {
        CompatibilityProfile.PANTHEON_1_2: "besu",
        CompatibilityProfile.BESU_21: "besu",
        CompatibilityProfile.GETH_1_13: "geth",
        CompatibilityProfile.GOQUORUM: "goquorum",
    },
    "rpc-http-error-status-400": {CompatibilityProfile.PANTHEON_1_2: "true"},
    "dev-fork": {
        CompatibilityProfile.PANTHEON_1_2: "petersburg",
        CompatibilityProfile.BESU_21: "petersburg",
        CompatibilityProfile.BESU_26: "london",
    },
    "dev-chain-id": {
        CompatibilityProfile.PANTHEON_1_2: "2018",
        CompatibilityProfile.BESU_21: "1337",
        CompatibilityProfile.BESU_26: "1337",
        CompatibilityProfile.GETH_1_13: "1337",
        CompatibilityProfile.GOQUORUM: "1337",
    },
    "dev-base-fee": {CompatibilityProfile.BESU_26: "0"},
    "block-period": {
        CompatibilityProfile.PANTHEON_1_2: "1",
        CompatibilityProfile.BESU_21: "1",
        CompatibilityProfile.BESU_26: "1",
    },
    "min-gas-price": {
        CompatibilityProfile.PANTHEON_1_2: "1000",
        CompatibilityProfile.BESU_21: "1000",
        CompatibilityProfile.BESU_26: "1000",
        CompatibilityProfile.GETH_1_13: "1",
        CompatibilityProfile.GOQUORUM: "0",
    },
    "max-peers": {
        CompatibilityProfile.PANTHEON_1_2: "25",
        CompatibilityProfile.BESU_21: "25",
        CompatibilityProfile.BESU_26: "25",
        CompatibilityProfile.GETH_1_13: "50",
        CompatibilityProfile.GOQUORUM: "50",
    },
    "rpc-tx-feecap": {
        CompatibilityProfile.BESU_21: _ETHER,
        CompatibilityProfile.BESU_26: _ETHER,
        CompatibilityProfile.GETH_1_13: _ETHER,
    },
    "permissions-accounts-contract-at-admission": {
        CompatibilityProfile.BESU_21: "true",
        CompatibilityProfile.BESU_26: "true",
    },
    "rpc-max-logs-range": {CompatibilityProfile.BESU_26: "5000"},
}
"""Options, each with its value by profile. If a profile has no value, Ophion's default applies."""

_DEV_PREFIXES: Final = ("dev-", "block-period")
"""Prefixes of options that only the dev network has."""


def compat_settings(given: Iterable[OptionTexts], specs: Iterable[OptionSpec]) -> Iterator[OptionTexts]:
    """Yield the settings of the profile that `--compat` names. Without a genesis file, options of the dev network are
    included.
    """
    chosen = _chosen(given)
    if chosen is None:
        return
    by_name = {name: spec for spec in specs for name in spec.names}
    has_genesis_file = any(item.spec.name == "genesis-file" for item in given)
    for name, values in COMPAT_TABLE.items():
        if chosen in values and name in by_name and not (has_genesis_file and name.startswith(_DEV_PREFIXES)):
            label = f"option of --compat={chosen.value}"
            yield OptionTexts(by_name[name], (values[chosen],), OptionSource.PROFILE, label)


def _chosen(given: Iterable[OptionTexts]) -> CompatibilityProfile | None:
    found = [item for item in given if item.spec.name == "compat"]
    if not found:
        return None
    text = min(found, key=lambda item: item.source.value).texts
    # return None for an unknown name, because the option loader reports unknown names
    return next((one for one in CompatibilityProfile if text and one.value == text[0].lower()), None)
