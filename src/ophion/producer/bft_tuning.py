"""`BftTuning`: the operator settings of BFT rounds."""

from __future__ import annotations

from msgspec import Struct

from ophion.consensus.bft.engine import DEFAULT_MAX_TIMEOUT_S
from ophion.consensus.bft_form_choices import HeaderFormChoice, WireProfileChoice


class BftTuning(Struct, frozen=True):
    """Operator settings of rounds. Further settings are in the genesis file."""

    max_timeout_s: float = DEFAULT_MAX_TIMEOUT_S
    """Maximum round timeout in seconds."""
    follows_others: bool = True
    """Whether to follow f + 1 validators to a later round, before the timeout of the current round."""
    passes_over: bool = True
    """Whether to request the next round, without waiting for the timeout, if the proposer is absent."""
    profile: WireProfileChoice = WireProfileChoice.AUTO
    header_form: HeaderFormChoice = HeaderFormChoice.AUTO
