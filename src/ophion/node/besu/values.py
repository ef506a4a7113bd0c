"""Replaces values that only Besu accepts, for options that both clients have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.runtime.options import OptionSource, OptionTexts


class ValueRule(Struct, frozen=True):
    """The replacement of a Besu value, and the reason shown in the warning. If the replacement is None, the option is
    omitted.
    """

    replacement: str | None
    reason: str


_FULL = ValueRule("FULL", "blocks are fetched and executed in full")
_NO_NAT = ValueRule("NONE", "set --p2p-host to the address that peers reach")
_NO_GROUP = ValueRule(None, "there is no such API group")
_NO_CATEGORY = ValueRule(None, "there are no metrics of this category")
_JSON = ValueRule("JSON", "there is one JSON format")
_GROUPS = dict.fromkeys(("engine", "goquorum"), _NO_GROUP)

VALUE_RULES: Final[Mapping[str, Mapping[str, ValueRule]]] = {
    "sync-mode": {"x_snap": ValueRule("SNAP", ""), **dict.fromkeys(("checkpoint", "x_checkpoint"), _FULL)},
    "nat-method": dict.fromkeys(("auto", "docker", "kubernetes", "upnpp2ponly"), _NO_NAT),
    "rpc-http-api": _GROUPS,
    "rpc-ws-api": _GROUPS,
    "metrics-category": dict.fromkeys(
        (
            "bal",
            "bonsai_cache",
            "block_processing",
            "stratum",
            "kvstore_private_rocksdb",
            "kvstore_private_rocksdb_stats",
        ),
        _NO_CATEGORY,
    ),
    "net-restrict": {"none": ValueRule(None, "")},
    "logging-format": {"plain": ValueRule("TEXT", ""), **dict.fromkeys(("ecs", "gcp", "logstash", "gelf"), _JSON)},
}
"""Replacement rules by option name, and then by value in lower case."""


def adapt_values(given: Iterable[OptionTexts]) -> tuple[list[OptionTexts], list[str]]:
    """Replace values that only Besu accepts, and drop an idle network option. Returns the settings, and warnings."""
    adapted: list[OptionTexts] = []
    warnings: list[str] = []
    given = list(given)
    has_checkpoint = any(item.spec.name == "sync-checkpoint" for item in given)
    for item in given:
        # with --sync-checkpoint, --sync-mode=CHECKPOINT has Ophion's meaning: do not convert it
        rules = None if has_checkpoint and item.spec.name == "sync-mode" else VALUE_RULES.get(item.spec.name)
        if rules is None or not any(_key(text) in rules for text in item.texts):
            adapted.append(item)
            continue
        texts: list[str] = []
        for text in item.texts:
            rule = rules.get(_key(text))
            if rule is None:
                texts.append(text)
                continue
            if rule.replacement is not None:
                texts.append(rule.replacement)
            if rule.reason:
                outcome = "is left out" if rule.replacement is None else f"is read as {rule.replacement}"
                warnings.append(f"{text} of {item.label} {outcome}: {rule.reason}.")
        adapted.append(replace(item, texts=tuple(texts)))
    return _without_idle_network(adapted, warnings), warnings


def _key(text: str) -> str:
    return text.strip().lower().replace("-", "_")


def _without_idle_network(given: list[OptionTexts], warnings: list[str]) -> list[OptionTexts]:
    """Drop the network option of the file or the environment if a genesis file is given. Besu behaves in the
    same way.
    """
    if not any(item.spec.name == "genesis-file" for item in given):
        return given
    idle = [item for item in given if item.spec.name == "network" and item.source is not OptionSource.FLAG]
    warnings.extend(f"{item.label} has no effect beside a genesis file." for item in idle)
    return [item for item in given if item not in idle]
