"""The header forms that BFT clients have written since Shanghai (consensus.md 8).

The forks define the fields after the base fee. Some versions of Besu omit part of these fields, and their chains are
final, so Ophion reads all forms. A node writes the form of the parent, because validators may refuse other forms. If
the chain does not show a form yet, the node chooses a form.

    form            Shanghai    Cancun                                             written by
    FULL            17 items    20 items, 21 from Prague on                        Besu 24.4 to 24.5.1, from 26.1 on
    SHORT           16 items    16 items                                           Besu 25.12
    SHORT_BLOBS     16 items    18 items: blob gas used and excess, both zero      Besu 24.5.2 to 24.5.x

A header without withdrawals root belongs to a body without withdrawals and without blobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import HeaderForm
from ophion.chainspec.forks import Fork, Milestone
from ophion.consensus.bft_form_choices import HeaderFormChoice
from ophion.consensus.header_rules import check_tail
from ophion.errors import InvalidHeader
from ophion.primitives.header import Header

_ALL: Final = (HeaderForm.FULL, HeaderForm.SHORT, HeaderForm.SHORT_BLOBS)
"""All forms, in order of preference."""
_BESU: Final = r"besu/v?(\d+)\.(\d+)(?:\.(\d+))?"
_OPHION: Final = "ophion/"
_FIRST_SHORT: Final = (24, 5, 2)
_LAST_WITH_BLOBS: Final = (24, 5)
_FIRST_FULL: Final = (26, 1, 0)


def check_form(header: Header, fork: Fork) -> None:
    """Check that the header has the fields of one of the forms. Headers of one chain may have different forms."""
    if not fork.has(Milestone.SHANGHAI) or header.withdrawals_root is not None:
        check_tail(header, fork)
        return
    if header.parent_beacon_block_root is not None:
        raise InvalidHeader("parent beacon block root", "present", "absent in a header without withdrawals root")
    if header.blob_gas_used is None:
        return
    if not fork.has(Milestone.CANCUN):
        raise InvalidHeader("blob gas used", "present", f"absent in {fork.milestone.name.lower()}")
    if header.blob_gas_used or header.excess_blob_gas:
        got = f"{header.blob_gas_used} and an excess of {header.excess_blob_gas}"
        raise InvalidHeader("blob gas used", got, "0 and 0 in a header without withdrawals root")


def next_form(parent: Header, fork_of_parent: Fork, choice: HeaderForm | None) -> HeaderForm:
    """Return the form of the block after `parent`. The parent's fields decide, or `choice` if these fields fit several
    forms.
    """
    open_forms = _forms_of(parent, fork_of_parent)
    return choice if choice in open_forms else open_forms[0]


def _forms_of(parent: Header, fork: Fork) -> tuple[HeaderForm, ...]:
    """Return the forms that fit a header. Every form fits a genesis header, because the node itself creates that
    header.
    """
    if not fork.has(Milestone.SHANGHAI) or parent.number == 0:
        return _ALL
    if parent.withdrawals_root is not None:
        return (HeaderForm.FULL,)
    if not fork.has(Milestone.CANCUN):
        return (HeaderForm.SHORT, HeaderForm.SHORT_BLOBS)
    return (HeaderForm.SHORT,) if parent.blob_gas_used is None else (HeaderForm.SHORT_BLOBS,)


def in_form(header: Header, form: HeaderForm) -> Header:
    """Convert a header with all fields to another header form."""
    if form is HeaderForm.FULL or header.withdrawals_root is None:
        return header
    blob_gas = 0 if form is HeaderForm.SHORT_BLOBS and header.blob_gas_used is not None else None
    return replace(
        header,
        withdrawals_root=None,
        blob_gas_used=blob_gas,
        excess_blob_gas=blob_gas,
        parent_beacon_block_root=None,
        requests_hash=None,
    )


def chosen_form(choice: HeaderFormChoice, network: HeaderForm | None, clients: Iterable[str]) -> HeaderForm | None:
    """Return the form to write if the chain does not show a form yet. None means the full form.

    `network` is the genesis file's form, `clients` are the client names of connected validators.
    """
    if choice is not HeaderFormChoice.AUTO:
        return HeaderForm(choice.value)
    if network is not None:
        return network
    others = [besu_version(client) for client in clients if not client.lower().startswith(_OPHION)]
    if not others or not all(version is not None and _FIRST_SHORT <= version < _FIRST_FULL for version in others):
        return None
    is_early = all(version is not None and version[:2] == _LAST_WITH_BLOBS for version in others)
    return HeaderForm.SHORT_BLOBS if is_early else HeaderForm.SHORT


def besu_version(client: str) -> tuple[int, int, int] | None:
    """Return the version in a Besu client name, or None for another client."""
    found = re.match(_BESU, client, re.IGNORECASE)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3] or 0))
