"""Every line of a Besu configuration file is kept, renamed or commented out with the reason."""

from __future__ import annotations

import tomllib
from pathlib import Path

from ophion.migration.config_translation import translate_config

CONFIG = """
data-path = "/opt/besu"
p2p-port = 30304
rpc-http-api = ["ETH", "NET"]
host-whitelist = ["*"]
Xdns-enabled = true
plugin-rocksdb-x = 1
bonsai-limit-trie-logs-enabled = false
"odd = key" = "a\\nb"
"""


def test_each_line_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    done = translate_config(file, tmp_path / "data")
    table = tomllib.loads(done.text)
    assert table["data-path"] == str(tmp_path / "data")
    assert table["p2p-port"] == 30304
    assert table["rpc-http-api"] == ["ETH", "NET"]
    assert "plugin-rocksdb-x" not in table
    outcomes = {line.key: line.outcome for line in done.lines}
    assert list(outcomes) == list(tomllib.loads(CONFIG))
    assert outcomes["p2p-port"] == "kept"
    assert outcomes["plugin-rocksdb-x"] == "commented out, not supported: Ophion loads no plugins"
    assert outcomes["odd = key"] == "unknown, commented out"
    assert len(done.by_hand) == sum("unknown" in text or "not supported" in text for text in outcomes.values())
