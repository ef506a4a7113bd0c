"""Tests the header forms that BFT clients have written since Shanghai (consensus.md 8)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import HeaderForm
from ophion.consensus.bft_form_choices import HeaderFormChoice
from ophion.consensus.bft_header_form import chosen_form
from ophion.consensus.engine import BlockPreferences
from ophion.errors import InvalidHeader
from ophion.primitives.header import Header
from tests.unit.consensus.bft.golden import K1
from tests.unit.consensus.bft.ledger import Ledger, genesis_of

SHANGHAI, CANCUN, PRAGUE = 10, 20, 30
"""Fork times in seconds. Blocks are two seconds apart, so the forks begin with blocks 5, 10 and 15."""


def ledger(times: bool = True) -> Ledger:
    forks = {"shanghaiTime": SHANGHAI, "cancunTime": CANCUN, "pragueTime": PRAGUE} if times else {}
    return Ledger(genesis_of("qbft", [K1.address], londonBlock=0, **forks))


def grown(form: HeaderForm | None, blocks: int = 20) -> list[Header]:
    """Return headers of a chain whose producer requests this header form."""
    chain = ledger()
    for _ in range(blocks):
        preferences = BlockPreferences(timestamp=0, author=K1.address, header_form=form)
        header = chain.sealed(chain.engine.prepare(chain.head, preferences, chain), [K1])
        chain.verify(header)
        chain.headers.append(header)
    return [header.header for header in chain.headers]


def lengths(headers: list[Header]) -> list[int]:
    """Return the numbers of fields of headers in London, Shanghai, Cancun and Prague."""
    return [len(headers[number].encoded_fields(b"")) for number in (4, 5, 9, 10, 14, 15, 20)]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (None, [16, 17, 17, 20, 20, 21, 21]),
        (HeaderForm.FULL, [16, 17, 17, 20, 20, 21, 21]),
        (HeaderForm.SHORT, [16, 16, 16, 16, 16, 16, 16]),
        (HeaderForm.SHORT_BLOBS, [16, 16, 16, 18, 18, 18, 18]),
    ],
)
def test_each_form_has_its_fields(form: HeaderForm | None, expected: list[int]) -> None:
    headers = grown(form)
    assert lengths(headers) == expected
    assert [Header.decode(header.encode()) for header in headers] == headers


@pytest.mark.parametrize("form", HeaderForm)
@pytest.mark.parametrize("wish", [None, *HeaderForm])
def test_a_chain_keeps_its_header_form_regardless_of_preferences(form: HeaderForm, wish: HeaderForm | None) -> None:
    chain = ledger()
    for number in range(1, 21):
        chosen = form if number < 12 else wish
        preferences = BlockPreferences(timestamp=0, author=K1.address, header_form=chosen)
        chain.headers.append(chain.sealed(chain.engine.prepare(chain.head, preferences, chain), [K1]))
    assert lengths([header.header for header in chain.headers]) == lengths(grown(form))


def test_cancun_is_a_second_choice_after_a_short_shanghai() -> None:
    """Shanghai headers are the same in both short forms, so the first Cancun header decides."""
    chain = ledger()
    for number in range(1, 21):
        form = HeaderForm.SHORT if number < 8 else HeaderForm.SHORT_BLOBS
        preferences = BlockPreferences(timestamp=0, author=K1.address, header_form=form)
        chain.headers.append(chain.sealed(chain.engine.prepare(chain.head, preferences, chain), [K1]))
    assert lengths([header.header for header in chain.headers]) == [16, 16, 16, 18, 18, 18, 18]


def test_a_genesis_past_shanghai_says_nothing_about_the_form() -> None:
    chain = Ledger(genesis_of("ibft2", [K1.address], londonBlock=0, shanghaiTime=0))
    assert chain.head.header.withdrawals_root is not None
    preferences = BlockPreferences(timestamp=0, author=K1.address, header_form=HeaderForm.SHORT)
    assert chain.engine.prepare(chain.head, preferences, chain).withdrawals_root is None


def test_forms_may_change_from_block_to_block_on_import() -> None:
    """A network whose validators were replaced one by one has headers of both forms. So an import accepts both in any
    order.
    """
    chain = ledger()
    for number in range(1, 21):
        header = chain.draft(K1)
        if number % 2 and header.withdrawals_root is not None:
            header = replace(
                header,
                withdrawals_root=None,
                blob_gas_used=None,
                excess_blob_gas=None,
                parent_beacon_block_root=None,
                requests_hash=None,
            )
        sealed = chain.sealed(header, [K1])
        chain.verify(sealed)
        chain.headers.append(sealed)


@pytest.mark.parametrize(
    ("number", "changes", "rule"),
    [
        (4, {"withdrawals_root": bytes(32)}, "withdrawals root"),
        (7, {"withdrawals_root": None, "blob_gas_used": 0, "excess_blob_gas": 0}, "blob gas used"),
        (7, {"blob_gas_used": 0}, "blob gas used"),
        (12, {"withdrawals_root": None, "blob_gas_used": 2**17, "parent_beacon_block_root": None}, "blob gas used"),
        (12, {"withdrawals_root": None, "excess_blob_gas": 1, "parent_beacon_block_root": None}, "blob gas used"),
        (12, {"withdrawals_root": None}, "parent beacon block root"),
        (17, {"requests_hash": None}, "requests hash"),
    ],
)
def test_other_gaps_are_refused(number: int, changes: dict[str, object], rule: str) -> None:
    chain = ledger()
    while chain.head.number < number - 1:
        chain.add(K1, keys=[K1])
    with pytest.raises(InvalidHeader, match=rule):
        chain.verify(chain.sealed(chain.draft(K1, **changes), [K1]))


# --- choosing -----------------------------------------------------------------------------------

BESU_24_5 = "besu/v24.5.4/linux-x86_64/openjdk-java-17"
BESU_25 = "besu/v25.12.0/linux-x86_64/openjdk-java-25"
BESU_26 = "besu/v26.2.0/linux-x86_64/openjdk-java-25"
OPHION = "Ophion/v0.1.0/linux-x86_64/python-3.11"


@pytest.mark.parametrize(
    ("clients", "expected"),
    [
        ([], None),
        ([OPHION], None),
        ([BESU_26], None),
        (["besu/v24.4.0/x", "besu/v24.5.1/x"], None),
        (["Geth/v1.10.3-stable(quorum-v24.4.1)/linux-amd64/go1.26"], None),
        ([BESU_25], HeaderForm.SHORT),
        ([BESU_25, OPHION], HeaderForm.SHORT),
        ([BESU_25, BESU_26], None),
        ([BESU_24_5], HeaderForm.SHORT_BLOBS),
        ([BESU_24_5, "besu/v24.5.2"], HeaderForm.SHORT_BLOBS),
        ([BESU_24_5, BESU_25], HeaderForm.SHORT),
        (["besu/v24.6/x"], HeaderForm.SHORT),
    ],
)
def test_left_to_itself_a_node_does_as_the_validators_around_it(clients: list[str], expected: HeaderForm) -> None:
    assert chosen_form(HeaderFormChoice.AUTO, None, clients) is expected


def test_the_genesis_file_comes_before_the_peers_and_the_option_before_both() -> None:
    assert chosen_form(HeaderFormChoice.AUTO, HeaderForm.FULL, [BESU_25]) is HeaderForm.FULL
    assert chosen_form(HeaderFormChoice.SHORT_BLOBS, HeaderForm.FULL, [BESU_25]) is HeaderForm.SHORT_BLOBS
    for choice in HeaderFormChoice:
        if choice is not HeaderFormChoice.AUTO:
            assert chosen_form(choice, None, [BESU_26]) is HeaderForm(choice.value)
