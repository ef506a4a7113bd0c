"""Tests the directory of a network."""

from __future__ import annotations

import json
import shlex
import stat
import tomllib
from pathlib import Path

import pytest

from ophion.errors import CommandError
from ophion.gateway.backends import BackendNetwork, ServiceKind
from ophion.permissions.options import DEFAULT_FILE
from ophion.primitives.enode import Enode
from ophion.quickstart.monitoring import commands
from ophion.quickstart.network_directory import PLAN as PLAN_FILE
from ophion.quickstart.network_directory import UNFINISHED, NetworkDirectory, discard_unfinished, prepare, where
from ophion.quickstart.plan import Consensus, NetworkPlan
from ophion.quickstart.ports import NetworkPorts, NodePorts
from ophion.runtime.clock import SystemEntropy

PLAN = NetworkPlan(Consensus.QBFT, 2, 2, None, False, True)
LAYOUT = NetworkPorts({node.name: NodePorts(1 + index, 2, 3, 4, 5) for index, node in enumerate(PLAN.nodes)}, 6, {})


def test_what_is_made_once_and_what_is_written_for_each_start(tmp_path: Path) -> None:
    work = NetworkDirectory.make(tmp_path, PLAN, SystemEntropy())
    assert stat.S_IMODE((tmp_path / "validator1" / "key").stat().st_mode) == 0o600
    assert not work.has_run
    work.write_files(LAYOUT)
    key = (tmp_path / "validator1" / "key").read_text()
    others = [Enode.parse(url) for url in json.loads((tmp_path / "validator1" / "static-nodes.json").read_text())]
    assert [one.tcp_port for one in others] == [1, 3]
    rules = tomllib.loads((tmp_path / "validator1" / DEFAULT_FILE).read_text())
    assert len(rules["nodes-allowlist"]) == 3
    site = BackendNetwork.read(tmp_path / "site.json")
    assert [(node.name, node.role, node.places[ServiceKind.JSON_RPC].port) for node in site.nodes] == [
        ("rpcnode", "rpc", 2),
        ("validator1", "validator", 2),
        ("validator2", "validator", 2),
    ]
    scraped = json.loads((tmp_path / "monitoring" / "prometheus.yml").read_text())
    assert [job["job_name"] for job in scraped["scrape_configs"]] == ["rpcnode", "validator1", "validator2"]
    dashboards = tmp_path / "monitoring" / "grafana" / "dashboards"
    assert json.loads((dashboards / "ophion.json").read_text())["uid"] == "ophion-overview"
    provider = json.loads((tmp_path / "monitoring/grafana/provisioning/dashboards/ophion.yml").read_text())
    assert provider["providers"][0]["options"]["path"] == str(dashboards)
    again = NetworkDirectory.open(tmp_path)
    assert again.plan == PLAN
    again.write_files(LAYOUT)
    assert (tmp_path / "validator1" / "key").read_text() == key


def test_tools_are_started_as_they_are_typed() -> None:
    layout = NetworkPorts({}, 6, {"prometheus": 9090, "grafana": 3000})
    words = {tool: shlex.split(line) for tool, line in commands(Path("/a place"), layout).items()}
    assert words["prometheus"][:2] == ["prometheus", "--config.file=/a place/monitoring/prometheus.yml"]
    assert words["grafana"] == ["grafana", "server", "--config=/a place/monitoring/grafana.ini"]


def test_nothing_is_left_of_it(tmp_path: Path) -> None:
    place = tmp_path / "network"
    place.mkdir()
    work = NetworkDirectory.make(place, PLAN, SystemEntropy())
    work.write_files(LAYOUT)
    assert work.remove() == []
    assert not place.exists()


def test_what_others_have_put_there_stays(tmp_path: Path) -> None:
    work = NetworkDirectory.make(tmp_path, PLAN, SystemEntropy())
    (tmp_path / "notes.txt").write_text("mine")
    assert work.remove() == ["notes.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


class Broken:
    """A random source that fails after a while."""

    def __init__(self) -> None:
        self.left = 2

    def token(self, size: int) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return SystemEntropy.token(size)


def test_nothing_is_left_of_one_that_was_not_finished(tmp_path: Path) -> None:
    place = tmp_path / "network"
    prepare(place)
    with pytest.raises(KeyboardInterrupt):
        NetworkDirectory.make(place, PLAN, Broken())
    assert not place.exists()


def unfinished(place: Path) -> None:
    """Write the files that a process leaves when it is killed while it writes the second key."""
    NetworkDirectory.make(place, PLAN, SystemEntropy())
    (place / PLAN_FILE).rename(place / UNFINISHED)
    (place / "genesis.json").rename(place / ".genesis.json.0123456789abcdef")
    (place / "validator1" / "key").rename(place / "validator1" / ".key.0123456789abcdef")
    (place / "lock").write_text('{"pid": 1}')


def test_one_that_was_not_finished_is_known_as_such(tmp_path: Path) -> None:
    unfinished(tmp_path)
    prepare(tmp_path)
    with pytest.raises(CommandError, match="was not finished.* up.* remove"):
        NetworkDirectory.open(tmp_path)
    assert discard_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    assert not discard_unfinished(tmp_path)
    NetworkDirectory.make(tmp_path, PLAN, SystemEntropy())
    assert not (tmp_path / UNFINISHED).exists()


def test_a_network_that_was_not_started_leaves_no_files(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / f".{UNFINISHED}.0123456789abcdef").write_text("{")
    prepare(tmp_path)
    discard_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


@pytest.mark.parametrize("name", ["notes.txt", ".genesis.json.mine", "validator1/notes.txt", "logs/a.log", "letters/a"])
def test_nothing_is_taken_away_where_others_have_put_something_too(tmp_path: Path, name: str) -> None:
    unfinished(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CommandError, match=f"other files \\({name.removesuffix('/a')}\\)"):
        discard_unfinished(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_is_taken_away_where_it_does_not_say_what_was_begun(tmp_path: Path) -> None:
    (tmp_path / UNFINISHED).write_text("a novel")
    (tmp_path / "validator1").mkdir()
    with pytest.raises(CommandError, match=UNFINISHED):
        discard_unfinished(tmp_path)
    assert (tmp_path / "validator1").is_dir()


def test_a_foreign_directory_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    with pytest.raises(CommandError, match="contains other files"):
        prepare(tmp_path)
    with pytest.raises(CommandError, match="There is no network in"):
        NetworkDirectory.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_shown_commands_name_the_directory_if_it_is_not_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert where(tmp_path / "ophion-quickstart") == ""
    assert where(tmp_path / "other") == f" --directory={tmp_path}/other"
    assert shlex.split(where(tmp_path / "a b")) == [f"--directory={tmp_path}/a b"]


def test_nodes_added_by_the_operator_stay_when_ports_change(tmp_path: Path) -> None:
    work = NetworkDirectory.make(tmp_path, PLAN, SystemEntropy())
    work.write_files(LAYOUT)
    static, rules = tmp_path / "rpcnode" / "static-nodes.json", tmp_path / "rpcnode" / DEFAULT_FILE
    added = f"enode://{'ab' * 64}@127.0.0.1:7"
    static.write_text(json.dumps([*json.loads(static.read_text()), added]))
    permitted = tomllib.loads(rules.read_text())["nodes-allowlist"]
    rules.write_text(f"nodes-allowlist = {json.dumps([added, *permitted])}  # a fifth one")
    (tmp_path / "validator1" / "static-nodes.json").write_text("{")
    moved = NetworkPorts({name: NodePorts(101 + place, 2, 3, 4, 5) for place, name in enumerate(LAYOUT.nodes)}, 6, {})
    for layout in (moved, moved):
        work.write_files(layout)
        assert [Enode.parse(url).tcp_port for url in json.loads(static.read_text())] == [102, 103, 7]
        listed = tomllib.loads(rules.read_text())["nodes-allowlist"]
        assert [Enode.parse(url).tcp_port for url in listed] == [101, 102, 103, 7]
    assert len(json.loads((tmp_path / "validator1" / "static-nodes.json").read_text())) == 2
