"""Tests `ophion operator`: keys and genesis of a new network."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from ophion.cli.command import CommandSession
from ophion.cli.operator import GenerateOptions, generate
from ophion.cli.rlp import ExtraDataType, validators_of
from ophion.errors import CommandError
from ophion.node.node_key_file import load_key
from ophion.runtime.options import LoadedConfig
from tests.conftest import shared_path

SESSION = CommandSession(LoadedConfig(None, {}))
KEYS = [
    "0xb295c4242fb40c6e8ac7b831c916846050f191adc560b8098ba6ad513079571ec1be6e5e1a715857a13a91963097962e048c36c5863014b59e8f67ed3f667680",
    "0x6295c4242fb40c6e8ac7b831c916846050f191adc560b8098ba6ad513079571ec1be6e5e1a715857a13a91963097962e048c36c5863014b59e8f67ed3f667680",
]


def description(nodes: Any, engine: str = "ibft2") -> dict[str, Any]:
    genesis = {"config": {"chainId": 2018, engine: {}}, "ExtraData": "0x00", "difficulty": "0x1", "alloc": {}}
    return {"genesis": genesis, "blockchain": {"nodes": nodes}}


def run(tmp_path: Path, content: Any, **names: str) -> Path:
    config, target = tmp_path / "config.json", tmp_path / "network"
    config.write_text(content if isinstance(content, str) else json.dumps(content))
    options = {"genesis_name": "genesis.json", "private_name": "key.priv", "public_name": "key.pub", **names}
    assert generate(GenerateOptions(config_file=config, target=target, **options), SESSION) == 0
    return target


@pytest.mark.parametrize(
    ("engine", "kind"), [("ibft2", ExtraDataType.IBFT_EXTRA_DATA), ("QBFT", ExtraDataType.QBFT_EXTRA_DATA)]
)
def test_made_keys_become_validators_in_ascending_order(tmp_path: Path, engine: str, kind: ExtraDataType) -> None:
    target = run(tmp_path, description({"generate": True, "count": 4}, engine))
    folders = sorted((target / "keys").iterdir())
    genesis = json.loads((target / "genesis.json").read_text())
    validators = validators_of(bytes.fromhex(genesis["extraData"][2:]), kind)
    assert "ExtraData" not in genesis
    assert [f"0x{address.hex()}" for address in validators] == [folder.name for folder in folders]
    for folder in folders:
        key = load_key(folder / "key.priv")
        assert f"0x{key.address.hex()}" == folder.name
        assert (folder / "key.pub").read_text() == f"0x{key.public_key.hex()}"
        assert stat.S_IMODE((folder / "key.priv").stat().st_mode) == 0o600


def test_imported_keys_bring_public_key_files_only(tmp_path: Path) -> None:
    target = run(tmp_path, description({"keys": KEYS}), public_name="node.pub", genesis_name="g.json")
    assert [sorted(entry.name for entry in folder.iterdir()) for folder in (target / "keys").iterdir()] == [
        ["node.pub"],
        ["node.pub"],
    ]
    assert len(json.loads((target / "g.json").read_text())["extraData"]) == 2 + 2 * 85


def test_signers_of_a_clique_network_stand_between_vanity_and_seal(tmp_path: Path) -> None:
    content = description({"generate": True, "count": 3}, "clique")
    del content["genesis"]["ExtraData"]
    target = run(tmp_path, content)
    genesis = json.loads((target / "genesis.json").read_text())
    signers = "".join(folder.name[2:] for folder in sorted((target / "keys").iterdir()))
    assert genesis["extraData"] == "0x" + "00" * 32 + signers + "00" * 65


def test_other_engines_keep_their_extra_data(tmp_path: Path) -> None:
    target = run(tmp_path, description({"generate": True, "count": 1}, "clique"))
    assert json.loads((target / "genesis.json").read_text())["ExtraData"] == "0x00"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "The top level must be an object, not an array"),
        ({}, "'genesis' is missing"),
        ({"genesis": 1}, "'genesis' must be an object, not a number"),
        ({"genesis": {}}, "'blockchain' is missing"),
        ({"genesis": {}, "blockchain": {}}, "'blockchain.nodes' is missing"),
        (description({}), "'blockchain.nodes.keys' is missing"),
        (description({"generate": "yes"}), "'blockchain.nodes.generate' must be a boolean, not text"),
        (description({"generate": True}), "'blockchain.nodes.count' is missing"),
        (
            description({"generate": True, "count": True}),
            "'blockchain.nodes.count' must be a whole number, not a boolean",
        ),
        (description({"generate": True, "count": 0}), "must be between 1 and 1000, not 0"),
        (description({"keys": []}), "at least one node"),
        (description({"keys": [KEYS[0], KEYS[0]]}), "names a key twice"),
        (description({"keys": [{"a": 1}]}), r"keys\[0\]: invalid key type: expected text, found an object"),
        (description({"keys": ["0x12"]}), r"keys\[0\]: invalid public key"),
    ],
)
def test_a_bad_description_is_one_clear_error_and_nothing_is_written(
    tmp_path: Path, content: Any, message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        run(tmp_path, content)
    assert not (tmp_path / "network").exists()


def test_the_output_directory_must_be_empty(tmp_path: Path) -> None:
    (tmp_path / "network").mkdir()
    run(tmp_path, description({"keys": KEYS}))
    with pytest.raises(CommandError, match=r"^Output directory must be empty\.$"):
        run(tmp_path, description({"keys": KEYS}))


@pytest.mark.parametrize("names", [{"public_name": "key.priv"}, {"genesis_name": "keys"}])
def test_the_names_of_the_files_must_differ(tmp_path: Path, names: dict[str, str]) -> None:
    with pytest.raises(CommandError, match=r"^Output file paths must be unique\.$"):
        run(tmp_path, description({"keys": KEYS}), **names)
    assert not (tmp_path / "network").exists()


def test_what_no_node_can_use_is_written_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = {"genesis": {"config": {"ibft2": {}}}, "blockchain": {"nodes": {"keys": ["0x" + "00" * 64]}}}
    run(tmp_path, content)
    warned = capsys.readouterr().err
    assert "Warning: blockchain.nodes.keys[0] is not a point of the curve" in warned
    assert "Warning: a node refuses this genesis: " in warned


@pytest.mark.parametrize("name", ["config_generate_keys", "config_import_keys", "config_import_keys_invalid_keys"])
def test_published_descriptions(tmp_path: Path, name: str) -> None:
    content = shared_path("fixtures", "original", "operator", f"{name}.json").read_text()
    if "invalid" in name:
        with pytest.raises(CommandError, match="invalid key type"):
            run(tmp_path, content)
        return
    target = run(tmp_path, content)
    nodes = json.loads(content)["blockchain"]["nodes"]
    assert len(list((target / "keys").iterdir())) == nodes.get("count", len(nodes.get("keys", [])))
