"""Mining on the dev network of Besu: a miner makes a block every second, also without transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ophion.node.compatibility_profiles import COMPAT_TABLE, CompatibilityProfile
from ophion.runtime.options import OptionSource, OptionSpec, OptionTexts

_PERIOD = "block-period"
_LABEL = "mining on the dev network of Besu"


def dev_mining_settings(given: Iterable[OptionTexts], specs: Iterable[OptionSpec]) -> Iterator[OptionTexts]:
    """With `--besu-conventions` and without a genesis file, yield the block period of Besu's dev network."""
    texts = {item.spec.name: item.texts for item in given}
    if texts.get("besu-conventions", ("false",))[0].lower() != "true" or "genesis-file" in texts:
        return
    for spec in specs:
        if _PERIOD in spec.names:
            period = COMPAT_TABLE[_PERIOD][CompatibilityProfile.BESU_26]
            yield OptionTexts(spec, (period,), OptionSource.PROFILE, _LABEL)
