"""Options of features that this version does not have.

Their main switches stop the node with one line that says so: running without a feature that an operator relies on would
be worse. Everything that only tunes such a feature is accepted, so that command lines and files written for it work.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ophion.runtime.options import between, option


@dataclass(frozen=True, slots=True)
class PrivacyConfig:
    """Private transactions."""

    enabled: bool = option("--privacy-enabled", default=False, help="Send and execute private transactions.")
    precompiled_address: int = option(
        "--privacy-precompiled-address",
        default=126,
        check=between(10, 65535),
        needs="--privacy-enabled",
        help="Number of the precompiled contract that marker transactions call.",
    )
    marker_key_file: Path | None = option(
        "--privacy-marker-transaction-signing-key-file",
        default=None,
        needs="--privacy-enabled",
        help="Key that signs marker transactions; a random one each otherwise.",
    )
