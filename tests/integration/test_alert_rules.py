"""Checks the alert rules beside the dashboard with Prometheus' own tool.

`OPHION_PROMTOOL` names the program if it is not on the PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "src" / "ophion" / "metrics" / "alerts.yml"
PROMTOOL = os.environ.get("OPHION_PROMTOOL") or shutil.which("promtool")

pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="no program promtool on the PATH (Debian: prometheus)")

_SERIES = """
rule_files: [{rules}]
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
      - series: 'up{{job="ophion", instance="a"}}'
        values: '1x40'
      - series: 'up{{job="ophion", instance="b"}}'
        values: '0x40'
      - series: 'ethereum_blockchain_height{{instance="a"}}'
        values: '5x40'
      - series: 'ethereum_blockchain_height{{instance="b"}}'
        values: '0+1x40'
      - series: 'ophion_blockchain_vote_store_available{{instance="a"}}'
        values: '1x10 0x30'
    alert_rule_test:
      - eval_time: 8m
        alertname: OphionNodeDown
        exp_alerts:
          - exp_labels: {{severity: critical, job: ophion, instance: b}}
            exp_annotations:
              summary: b answers no metrics requests.
              action: Check the process and its log. Start it again if it has stopped.
      - eval_time: 8m
        alertname: OphionNoNewBlocks
        exp_alerts:
          - exp_labels: {{severity: critical, instance: a}}
            exp_annotations:
              summary: a has had no new block for 5 minutes.
              action: >-
                Run `ophion doctor` with the RPC addresses of all nodes. It names absent validators and the reason.
      - eval_time: 2m
        alertname: OphionSigningStopped
        exp_alerts: []
"""


def _promtool(*words: str) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_valid() -> None:
    assert "SUCCESS" in _promtool("check", "rules", str(RULES))


def test_alerts_fire_for_a_stopped_node_and_a_stopped_chain(tmp_path: Path) -> None:
    file = tmp_path / "test.yml"
    file.write_text(_SERIES.format(rules=RULES))
    assert "SUCCESS" in _promtool("test", "rules", str(file))
