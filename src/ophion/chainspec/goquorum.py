"""Converts GoQuorum's forms of the genesis `config` to Besu's forms, before the genesis is read.

GoQuorum's forms are a list of `transitions`, the sections `istanbul` and `qbft` with geth's spellings, and code sizes
in KiB. GoQuorum's older protocols (Raft, Istanbul BFT before QBFT) have no equivalent and are refused.
"""

from __future__ import annotations

from typing import Any, Final

from ophion.chainspec.genesis_fields import LowerCaseObject, as_number
from ophion.errors import GenesisError

_KIB: Final = 1024
_SPELLINGS: Final = {"epoch": "epochlength"}
_WITHOUT_EFFECT: Final = ("policy", "ceil2nby3block", "testqbftblock", "allowedfutureblocktime")
_TRANSACTION_LIMITS: Final = (
    "transactionsizelimit",
    "txnsizelimit",
    "privacyenhancementsenabled",
    "privacyprecompileenabled",
)
_MARKS: Final = ("istanbul", "isquorum", "maxcodesize", "maxcodesizeconfig", "txnsizelimit")


def is_goquorum(config: LowerCaseObject) -> bool:
    """Whether a `config` object uses keys or values that only GoQuorum writes."""
    transitions = config.get("transitions")
    return (isinstance(transitions, list) and bool(transitions)) or any(mark in config for mark in _MARKS)


def rewrite_goquorum(config: LowerCaseObject) -> list[str]:
    """Rewrite the object in place and return warnings. Raises `GenesisError` for protocols that Ophion does not
    support.
    """
    warnings: list[str] = []
    given = config.pop("transitions", None)
    entries = [entry for entry in given if isinstance(entry, LowerCaseObject)] if isinstance(given, list) else []
    if isinstance(given, LowerCaseObject):
        _set(config, "transitions", given)
    istanbul = config.pop("istanbul", None)
    if isinstance(istanbul, LowerCaseObject):
        if not _starts_with_qbft(istanbul, entries):
            raise GenesisError(
                "GoQuorum's Istanbul BFT is not supported. Only networks that run QBFT from block 0 can be read: set"
                " testQBFTBlock to 0 or give a config.qbft section",
                "config.istanbul",
            )
        if "qbft" not in config:
            _set(config, "qbft", istanbul)
    section = config.get("qbft")
    if isinstance(section, LowerCaseObject):
        _respell(section)
    later = [rewritten for entry in entries if (rewritten := _entry(config, entry)) is not None]
    if later:
        _set(config, "transitions", LowerCaseObject([("qbft", later)]))
    _code_sizes(config)
    if "isquorum" in config and not any(name in config for name in ("qbft", "clique", "ethash", "ibft2")):
        raise GenesisError("GoQuorum's Raft is not supported: give a config.qbft section for a new network", "config")
    _order_forks(config, warnings)
    if config.pop("isquorum", False) is True:
        if "qbft" in config:
            _set(config, "freegaslimit", True)
        if not config.pop("gaspriceenabled", False):
            _set(config, "zerobasefee", True)
            warnings.append("Genesis file of GoQuorum: gas is free (zeroBaseFee), and transactions have no size limit")
    for name in _TRANSACTION_LIMITS:
        config.pop(name, None)
    return warnings


def _order_forks(config: LowerCaseObject, warnings: list[str]) -> None:
    """Start Berlin no later than London, because go-ethereum's London instructions include those of Berlin."""
    berlin, london = as_number(config.get("berlinblock")), as_number(config.get("londonblock"))
    if berlin is not None and london is not None and london < berlin:
        config["berlinblock"] = london
        warnings.append(f"Genesis file of GoQuorum: berlinBlock {berlin} is read as {london}, the block of London")


def _starts_with_qbft(istanbul: LowerCaseObject, entries: list[LowerCaseObject]) -> bool:
    if as_number(istanbul.get("testqbftblock")) == 0:
        return True
    return any(as_number(one.get("block")) == 0 and _algorithm(one) == "qbft" for one in entries)


def _algorithm(entry: LowerCaseObject) -> str:
    return str(entry.get("algorithm", "")).lower()


def _entry(config: LowerCaseObject, entry: LowerCaseObject) -> LowerCaseObject | None:
    """Convert a QBFT transition to Besu's form. For a transition at block 0, changes the `qbft` sections and returns
    None.
    """
    block, algorithm = as_number(entry.get("block")), _algorithm(entry)
    if algorithm not in ("", "qbft"):
        raise GenesisError(f"GoQuorum's algorithm {algorithm[:20]} is not supported, only qbft", "config.transitions")
    rest = LowerCaseObject(
        (entry.spelling[key], value)
        for key, value in entry.items()
        if key not in ("algorithm", "contractsizelimit", *_TRANSACTION_LIMITS)
    )
    size = as_number(entry.get("contractsizelimit"))
    if block != 0:
        if algorithm == "qbft":
            raise GenesisError("a change to QBFT after block 0 is not supported", "config.transitions")
        if size is not None:
            raise GenesisError("contractSizeLimit cannot change after block 0", "config.transitions")
        _respell(rest)
        return rest if len(rest) > 1 else None
    if size is not None:
        _set(config, "contractsizelimit", size * _KIB)
    _respell(rest)
    rest.pop("block", None)
    section = config.get("qbft")
    if isinstance(section, LowerCaseObject):
        for key, value in rest.items():
            _set(section, key, value)
    return None


def _respell(section: LowerCaseObject) -> None:
    if as_number(section.get("policy")) not in (None, 0):
        raise GenesisError("only the proposer policy 0 (round robin) is supported", "config.qbft.policy")
    for name in _WITHOUT_EFFECT:
        section.pop(name, None)
    for old, new in _SPELLINGS.items():
        if old in section and new not in section:
            _set(section, new, section.pop(old))


def _code_sizes(config: LowerCaseObject) -> None:
    size = as_number(config.pop("maxcodesize", None))
    sizes = config.pop("maxcodesizeconfig", None)
    for entry in sizes if isinstance(sizes, list) else []:
        if isinstance(entry, LowerCaseObject):
            if as_number(entry.get("block")) != 0:
                raise GenesisError("the code size cannot change after block 0", "config.maxCodeSizeConfig")
            size = as_number(entry.get("size"))
    if size and "contractsizelimit" not in config:
        _set(config, "contractsizelimit", size * _KIB)


def _set(section: LowerCaseObject, key: str, value: Any) -> None:
    section[key] = value
    section.spelling.setdefault(key, key)
