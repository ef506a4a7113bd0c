"""A rolling upgrade of a running network: the plan, and the checks between its steps."""

from __future__ import annotations

import json
from pathlib import Path

from ophion.testing.network import TestNetwork
from tests.integration.command import Finished, ophion


def test_each_step_is_checked_on_a_running_network(tmp_path: Path) -> None:
    with TestNetwork(tmp_path, "qbft", validators=4, followers=1) as network:
        names = ["v0", "v1", "v2", "v3", "f0"]
        plan = tmp_path / "plan.json"

        def check(step: int | None, version: str | None = None, wait_s: int = 60) -> Finished:
            nodes = [
                {
                    "name": name,
                    "rpc": f"http://127.0.0.1:{node.ports['json-rpc']}",
                    "role": "validator" if name.startswith("v") else "follower",
                }
                for name, node in zip(names, network.nodes, strict=True)
            ]
            plan.write_text(json.dumps({"nodes": nodes} | ({"version": version} if version else {})))
            words = () if step is None else (f"--check={step}", f"--wait={wait_s}")
            return ophion("operator", "rolling-upgrade", f"--plan={plan}", *words)

        network.wait(lambda: min(network.heights()) >= 2, 60, "the second block")
        printed = check(None).succeeded().out
        assert "At most 1 of them may be offline" in printed
        order = [line.split(".")[1].split()[0] for line in printed.splitlines() if line.startswith("Step ")][1:]
        assert order == ["f0", "v0", "v1", "v2", "v3"]
        assert "Go on with step 1: f0." in check(0).succeeded().out

        network.nodes[4].stop()
        offline = check(1, wait_s=0)
        assert offline.code == 1
        assert "f0 does not answer" in offline.out
        network.nodes[4].start()
        done = check(1).succeeded().out
        assert "Go on with step 2: v0." in done
        assert "Stop it now: it produced the head" in done or "until it has produced one" in done

        wrong = check(1, "Another/v9")
        assert wrong.code == 1
        assert "f0 runs ophion/" in wrong.out
        assert "instead of Another/v9" in wrong.out
        assert "The upgrade is complete." in check(5, "ophion/").succeeded().out
