"""Options of Anvil as options of the node."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.cli.anvil.node_settings import contradictions, node_tokens
from ophion.cli.anvil.options import AnvilOptions, ColorChoice


def test_options_that_are_not_given_set_nothing() -> None:
    assert node_tokens(AnvilOptions()) == []


def test_a_folder_for_the_state_gets_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    assert node_tokens(AnvilOptions(dump_state=tmp_path)) == [f"--dev-dump-state={file}"]
    assert node_tokens(AnvilOptions(state=tmp_path)) == [f"--dev-dump-state={file}"]
    file.write_text("{}")
    assert node_tokens(AnvilOptions(state=tmp_path)) == [f"--dev-load-state={file}", f"--dev-dump-state={file}"]


@pytest.mark.parametrize(
    ("given", "token"),
    [
        (AnvilOptions(ipc=()), "--dev-ipc-path=/tmp/anvil.ipc"),
        (AnvilOptions(ipc=("/run/node",)), "--dev-ipc-path=/run/node"),
        (AnvilOptions(hosts=("127.0.0.1", "::1")), "--rpc-http-host=127.0.0.1,::1"),
        (AnvilOptions(fork_chain_id=5), "--override-genesis-config=chainId=5"),
        (AnvilOptions(chain_id=6, fork_chain_id=5), "--override-genesis-config=chainId=6"),
        (AnvilOptions(has_no_cors=True), "--rpc-http-cors-origins=none"),
        (
            AnvilOptions(seed=1),
            "--dev-mnemonic=gesture car maximum regret pudding merry fatal electric sea grab crack social",
        ),
        (AnvilOptions(color=ColorChoice.NEVER), "--color-enabled=false"),
        (AnvilOptions(has_no_minimum=True), "--dev-priority-fee=0"),
        (AnvilOptions(fork_urls=("http://a", "http://b")), "--dev-fork-url=http://a,http://b"),
    ],
)
def test_an_option_becomes_an_option_of_the_node(given: AnvilOptions, token: str) -> None:
    assert node_tokens(given) == [token]


def test_contradictions_are_named() -> None:
    found = list(contradictions(AnvilOptions(no_mining=True, block_time=1.0, mnemonic="x", seed=1)))
    assert found == [
        "--no-mining makes blocks only on demand, --block-time at an interval. Choose one of them.",
        "--mnemonic and --mnemonic-seed-unsafe name different accounts. Choose one of them.",
    ]
    assert list(contradictions(AnvilOptions(is_mixed=True))) == [
        "--mixed-mining makes blocks at an interval as well: it needs --block-time."
    ]
