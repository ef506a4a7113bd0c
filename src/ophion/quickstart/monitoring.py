"""Configuration files of Prometheus and Grafana."""

from __future__ import annotations

import json
import shlex
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Final

from ophion.quickstart.ports import HOST, NetworkPorts

FOLDER: Final = "monitoring"
_PROGRAMS: Final = {"prometheus": ("prometheus",), "grafana": ("grafana-server", "grafana")}


def installed() -> tuple[str, ...]:
    """Return the names of the monitoring tools (Prometheus, Grafana) that are installed."""
    return tuple(tool for tool, names in _PROGRAMS.items() if any(shutil.which(name) for name in names))


def write_configuration(directory: Path, layout: NetworkPorts) -> None:
    """Write `prometheus.yml` with a job per node, and a data source and dashboard for Grafana."""
    folder = directory / FOLDER
    grafana = folder / "grafana"
    sources, providers = (grafana / "provisioning" / name for name in ("datasources", "dashboards"))
    for place in (sources, providers, grafana / "dashboards"):
        place.mkdir(parents=True, exist_ok=True)
    jobs = [
        {"job_name": name, "metrics_path": "/metrics", "static_configs": [{"targets": [f"{HOST}:{ports.metrics}"]}]}
        for name, ports in layout.nodes.items()
    ]
    scrape = {"global": {"scrape_interval": "15s", "evaluation_interval": "15s"}, "scrape_configs": jobs}
    # the file contains JSON, because JSON is valid YAML
    (folder / "prometheus.yml").write_text(json.dumps(scrape, indent=2) + "\n")
    prometheus = layout.tool_port("prometheus")
    source = {
        "name": "Prometheus",
        "type": "prometheus",
        "access": "proxy",
        "url": f"http://{HOST}:{prometheus}/prometheus",
        "isDefault": True,
    }
    (sources / "prometheus.yml").write_text(json.dumps({"apiVersion": 1, "datasources": [source]}, indent=2) + "\n")
    provider = {"name": "Ophion", "type": "file", "options": {"path": str(grafana / "dashboards")}}
    (providers / "ophion.yml").write_text(json.dumps({"apiVersion": 1, "providers": [provider]}, indent=2) + "\n")
    (grafana / "dashboards" / "ophion.json").write_bytes(
        files("ophion.metrics").joinpath("dashboard.json").read_bytes()
    )
    lines = [
        "[server]",
        f"http_addr = {HOST}",
        f"http_port = {layout.tool_port('grafana')}",
        f"root_url = http://{layout.address}/grafana/",
        "[auth.anonymous]",
        "enabled = true",
        "org_role = Viewer",
        "[paths]",
        f"data = {grafana / 'data'}",
        f"provisioning = {grafana / 'provisioning'}",
    ]
    (folder / "grafana.ini").write_text("\n".join(lines) + "\n")


def commands(directory: Path, layout: NetworkPorts) -> dict[str, str]:
    """Return the command lines that start the tools with this configuration."""
    folder = directory / FOLDER
    words = {
        "prometheus": (
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address={HOST}:{layout.tool_port('prometheus')}",
            f"--web.external-url=http://{layout.address}/prometheus/",
        ),
        "grafana": ("grafana", "server", f"--config={folder / 'grafana.ini'}"),
    }
    return {tool: shlex.join(command) for tool, command in words.items()}
