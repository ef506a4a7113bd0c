"""Every option of Anvil 1.7.1 is taken, has no effect, or is refused with a sentence."""

from __future__ import annotations

import pytest

from ophion.cli.main import main

TAKEN = [
    "--accounts=2",
    "-a=2",
    "--block-time=1",
    "-b=1",
    "--balance=5",
    "--chain-id=5",
    "--config-out=x",
    "--derivation-path=m/44'/60'/0'/0/",
    "--dump-state=x",
    "--load-state=x",
    "--state=x",
    "--hardfork=cancun",
    "--no-mining",
    "--order=fees",
    "--port=0",
    "-p=0",
    "--timestamp=5",
    "--quiet",
    "-q",
    "--silent",
    "--allow-origin=*",
    "--cache-path=x",
    "--host=127.0.0.1",
    "--no-request-size-limit",
    "--fork-url=http://127.0.0.1:1",
    "-f=http://127.0.0.1:1",
    "--rpc-url=http://127.0.0.1:1",
    "--fork-block-number=5",
    "--fork-header=a:b",
    "--fork-retry-backoff=5",
    "--no-storage-caching",
    "--retries=5",
    "--timeout=5",
    "--block-base-fee-per-gas=5",
    "--base-fee=5",
    "--code-size-limit=5",
    "--disable-block-gas-limit",
    "--disable-code-size-limit",
    "--gas-limit=5000",
    "--auto-impersonate",
    "--max-transactions=5",
]
NO_EFFECT = [
    "--threads=2",
    "-j=2",
    "--max-persisted-states=5",
    "--transaction-block-keeper=5",
    "--preserve-historical-states",
    "--prune-history",
    "--prune-history=5",
    "-v",
    "-vv",
    "-vvvvv",
    "--color=never",
    "--compute-units-per-second=5",
    "--no-rate-limit",
    "--print-traces",
    "--steps-tracing",
]
REFUSED = [
    "--init=x",
    "--ipc",
    "--ipc=x",
    "--mixed-mining",
    "--mnemonic-random",
    "--mnemonic-random=12",
    "--mnemonic-seed-unsafe=5",
    "--number=5",
    "--state-interval=5",
    "-s=5",
    "--slots-in-an-epoch=5",
    "--json",
    "--md",
    "--no-cors",
    "--fork-chain-id=5",
    "--fork-transaction-hash=0x",
    "--gas-price=5",
    "--disable-min-priority-fee",
    "--enable-tx-gas-limit",
    "--disable-console-log",
    "--disable-default-create2-deployer",
    "--disable-pool-balance-checks",
    "--memory-limit=5",
    "--celo",
]


@pytest.mark.parametrize("given", [*TAKEN, *NO_EFFECT])
def test_options_of_anvil_are_taken(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--print-command", given]) == 0
    assert capsys.readouterr().out.startswith("ophion ")


@pytest.mark.parametrize("given", NO_EFFECT)
def test_options_without_effect_leave_the_command_line_as_it_is(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["dev", "--print-command"])
    plain = capsys.readouterr().out
    main(["dev", "--print-command", given])
    assert capsys.readouterr().out == plain


@pytest.mark.parametrize("given", REFUSED)
def test_options_without_a_counterpart_are_refused_with_a_reason(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dev", "--print-command", given]) != 0
    assert f"Invalid value for option '{given.partition('=')[0]}': not supported, " in capsys.readouterr().err


def test_a_mnemonic_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--print-command", "-m", "test test test test test test test test test test test junk"]) == 0


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("--chain-id=0", "0 is less than 1"),
        ("--block-time=0", "0.0 is not between 0.001 and 1000000000"),
        ("--block-time=1e18", "1e+18 is not between 0.001 and 1000000000"),
        ("--block-time=nan", "'nan' is not a number"),
        ("--block-period=1e18", "1e+18 is not between 0 and 1000000000"),
        ("--block-period=-1", "-1.0 is not between 0 and 1000000000"),
    ],
)
def test_values_that_make_no_chain_are_refused(given: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--print-command", given]) != 0
    assert f"Invalid value for option '{given.partition('=')[0]}': {reason}" in capsys.readouterr().err
