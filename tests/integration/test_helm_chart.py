"""The options in the Helm chart exist, and the chart renders. HELM names the program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHART = ROOT / "packaging" / "helm" / "ophion"
HELM = shutil.which(os.environ.get("HELM", ""))
NEEDS_HELM = pytest.mark.skipif(HELM is None, reason="HELM does not name the program helm")
VALUES = sorted((CHART / "ci").glob("*.yaml"))


def _helm(*words: str | Path) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    return subprocess.run([HELM, *words], capture_output=True, text=True, timeout=60, check=False)


def test_the_chart_uses_options_of_the_node() -> None:
    template = (CHART / "templates" / "statefulset.yaml").read_text()
    used = set(re.findall(r'(?:- |")(--[a-z0-9-]+)', template))
    known = set(re.findall(r"`(--[A-Za-z0-9-]+)`", (ROOT / "docs" / "options.md").read_text()))
    assert len(used) > 10
    assert used <= known


def test_the_chart_has_the_version_of_the_package() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f'appVersion: "{version[1]}"' in (CHART / "Chart.yaml").read_text()


@NEEDS_HELM
@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_the_chart_is_valid(values: Path) -> None:
    done = _helm("lint", "--strict", CHART, "--values", values)
    assert done.returncode == 0, done.stdout
    rendered = _helm("template", "one", CHART, "--values", values).stdout
    assert rendered.count("kind: StatefulSet") == 1
    assert "/readiness?minPeers=1&maxBlocksBehind=10&voteStore=false" in rendered


@NEEDS_HELM
def test_several_nodes_with_one_key_need_a_vote_store() -> None:
    (validator,) = [path for path in VALUES if "validator" in path.name]
    done = _helm("template", "one", CHART, "--values", validator, "--set", "validator.voteStore=")
    assert done.returncode != 0
    assert "need validator.voteStore" in done.stderr
