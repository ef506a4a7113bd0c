"""What an operator may choose about consensus; what the network fixes is in its genesis file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ophion.consensus.bft.profiles import ProfileChoice
from ophion.consensus.header_form import HeaderFormChoice
from ophion.runtime.options import option


@dataclass(frozen=True, slots=True)
class ConsensusConfig:
    """Consensus."""

    max_round_timeout_s: float = option(
        "--bft-max-round-timeout",
        default=60.0,
        metavar="SECONDS",
        help="IBFT 2.0 and QBFT: rounds double in length up to this.",
    )
    follows_others: bool = option(
        "--bft-early-round-change",
        default=True,
        help="IBFT 2.0 and QBFT: join f + 1 validators that have asked for a later round at once.",
    )
    passes_over: bool = option(
        "--bft-pass-over-absent",
        default=True,
        help="IBFT 2.0 and QBFT: do not wait for the turn of a validator that missed one, or whose connection broke, "
        "and that has not been heard since.",
    )
    wire_profile: ProfileChoice = option(
        "--bft-wire-profile",
        default=ProfileChoice.AUTO,
        help="IBFT 2.0 and QBFT: write messages as Besu up to 25.12 does (classic), as Besu from 26.1 on does (bal), "
        "or as the connected validators understand them (auto).",
    )
    header_form: HeaderFormChoice = option(
        "--bft-header-form",
        default=HeaderFormChoice.AUTO,
        help="IBFT 2.0 and QBFT: the first header past Shanghai, whose form later ones keep. What the forks define "
        "(full), nothing behind the base fee as Besu 25.12 (short), with blob gas in Cancun as Besu 24.5.2 and its "
        "successors (short-blobs), or as the genesis file or the connected validators have it (auto).",
    )

    def problems(self) -> Iterator[str]:
        if not self.max_round_timeout_s > 0:
            yield f"Invalid value for option '--bft-max-round-timeout': {self.max_round_timeout_s} is not above 0"
