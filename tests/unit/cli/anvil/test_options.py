"""Every option of Anvil 1.7.1 is taken, has no effect, or is refused with a sentence."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from ophion.cli.anvil.options import AnvilEffect, AnvilOptions, effect_of, idle_warnings
from ophion.cli.main import main
from ophion.runtime.options import specs_of

ANVIL = os.environ.get("ANVIL")
LISTED = re.compile(r"^ +(?:(-\w), )?(--[\w-]+)(.*)$")
ALIASES = re.compile(r"\[aliases: (.*)\]")

TAKEN = [
    "--accounts=2",
    "-a=2",
    "--block-time=1",
    "--blockTime=1",
    "-b=1",
    "--balance=5",
    "--chain-id=5",
    "--chain-id=mainnet",
    "--config-out=x",
    "--derivation-path=m/44'/60'/0'/0/",
    "--dump-state=x",
    "--load-state=x",
    "--state=x",
    "--state-interval=5",
    "-s=5",
    "--hardfork=cancun",
    "--init=x",
    "--mnemonic-random",
    "--mnemonic-random=24",
    "--mnemonic-seed-unsafe=5",
    "--no-mining",
    "--number=5",
    "--no-mine",
    "--order=fees",
    "--port=0",
    "-p=0",
    "--slots-in-an-epoch=5",
    "--timestamp=5",
    "--color=never",
    "--json",
    "--quiet",
    "-q",
    "--silent",
    "--allow-origin=*",
    "--no-cors",
    "--cache-path=x",
    "--host=127.0.0.1",
    "--host=127.0.0.1,::1",
    "--no-request-size-limit",
    "--network=ethereum",
    "-n=ethereum",
    "--fork-url=http://127.0.0.1:1",
    "-f=http://127.0.0.1:1",
    "--rpc-url=http://127.0.0.1:1",
    f"--fork-transaction-hash=0x{'11' * 32}",
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
    "--disable-min-priority-fee",
    "--enable-tx-gas-limit",
    "--gas-limit=5000",
    "--auto-impersonate",
    "--auto-unlock",
    "--disable-console-log",
    "--disable-default-create2-deployer",
    "--print-traces",
    "--steps-tracing",
]
NO_EFFECT = [
    "--threads=2",
    "-j=2",
    "--jobs=2",
    "--max-persisted-states=5",
    "--max-transactions=5",
    "--transaction-block-keeper=5",
    "--preserve-historical-states",
    "--prune-history",
    "--prune-history=5",
    "-v",
    "-vv",
    "-vvvvv",
    "--md",
    "--compute-units-per-second=5",
    "--no-rate-limit",
    "--gas-price=5",
    "--disable-pool-balance-checks",
    "--memory-limit=5",
]
REFUSED = ["--celo", "--network=optimism", "-n=tempo"]


def flags_of_the_table() -> set[str]:
    return {flag for spec in specs_of(AnvilOptions) for flag in spec.declaration.flags}


def flags_in(text: str) -> set[str]:
    """Return the flags that a help text of Anvil lists, with their aliases."""
    found = set()
    for line in text.splitlines():
        if match := LISTED.match(line):
            found |= {flag for flag in match.groups()[:2] if flag}
        if match := ALIASES.search(line):
            found |= {flag for flag in match.group(1).split(", ") if flag.startswith("-")}
    return found - {"--help", "-h", "--version", "-V"}


@pytest.mark.skipif(ANVIL is None, reason="ANVIL does not name Anvil's binary")
def test_the_table_has_every_option_of_the_help_of_anvil() -> None:
    assert ANVIL is not None
    text = subprocess.run([ANVIL, "--help"], capture_output=True, text=True, check=True).stdout
    assert len(flags_in(text)) > 80
    assert flags_in(text) - flags_of_the_table() == set()


def test_each_option_of_the_table_is_taken_idle_or_refused() -> None:
    effects = {spec.flag: effect_of(spec) for spec in specs_of(AnvilOptions)}
    assert effects["--block-time"] is AnvilEffect.TAKEN
    assert effects["--threads"] is AnvilEffect.NO_EFFECT
    assert effects["--celo"] is AnvilEffect.REFUSED
    assert all(spec.declaration.help.endswith((".", ")")) for spec in specs_of(AnvilOptions))


def test_options_without_effect_are_warned_of_in_one_line() -> None:
    given = AnvilOptions(threads=2, memory_limit=5, verbosity=())
    assert idle_warnings(given) == [
        "--threads has no effect. The node chooses its threads by itself.",
        "--verbosity has no effect. --logging sets what the log shows.",
        "--memory-limit has no effect. The gas limit bounds the memory of a call.",
    ]


def test_a_value_is_not_taken_from_the_next_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--print-command", "--ipc", "-p", "1234"]) == 0
    line = capsys.readouterr().out
    assert "--dev-ipc-path=/tmp/anvil.ipc" in line
    assert "--rpc-http-port=1234" in line


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
        ("--chain-id=moon", "'moon' is neither a number nor a chain name that this node knows"),
        ("--ipc=a,b", "expected a single value"),
        ("--mnemonic-random=12,15", "expected a single value"),
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
