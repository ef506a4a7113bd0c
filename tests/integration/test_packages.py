"""Tests the packages of `make wheel` in an empty environment, and the files for systemd.

Building the source package takes minutes, so this part runs only with OPHION_PACKAGES=all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import ophion
from ophion.node.config import NodeConfig
from ophion.runtime.options import load, problems_of, read_environment, specs_of
from tests.conftest import ROOT

SYSTEMD = ROOT / "packaging" / "systemd"
OUTSIDER = """
import importlib.resources, json, pathlib, subprocess, sys, time, urllib.request
import ophion
package = importlib.resources.files(ophion)
for name in sys.argv[2:]:
    assert package.joinpath(name).read_bytes(), name
data = pathlib.Path(sys.argv[1])
options = ["--rpc-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0", f"--data-path={data}"]
node = subprocess.Popen([pathlib.Path(sys.executable).with_name("ophion"), "dev", *options])
try:
    until = time.monotonic() + 60
    while not (ports := data / "ophion.ports").exists():
        assert node.poll() is None and time.monotonic() < until
        time.sleep(0.01)
    found = dict(line.split("=") for line in ports.read_text().splitlines() if "=" in line)
    def ask(port, path, question):
        request = urllib.request.Request(f"http://127.0.0.1:{found[port]}{path}", json.dumps(question).encode(),
                                         {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=30))
    account = "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"
    sent = {"from": account, "to": account, "value": "0x1"}
    print(ask("json-rpc", "/", {"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [sent]}))
    print(ask("graphql-http", "/graphql", {"query": "{ block(number: 0) { number } }"}))
finally:
    node.terminate()
    assert node.wait(30) == 0
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the output of `make wheel`."""
    if os.environ.get("OPHION_DIST"):
        return Path(os.environ["OPHION_DIST"])
    target = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        ["make", "-s", "-C", str(ROOT), "wheel", f"DIST={target}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def the_one(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def package_files() -> list[str]:
    """Return all files in the package that are not Python: pages, schema, contracts."""
    found = (path for path in (ROOT / "src" / "ophion").rglob("*") if path.is_file() and path.stat().st_size)
    names = (path.relative_to(ROOT / "src" / "ophion").as_posix() for path in found)
    return sorted(name for name in names if not name.endswith((".py", ".pyc", ".so")))


def expect_metadata(text: str) -> None:
    metadata: Message = Parser().parsestr(text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cargo = tomllib.loads((ROOT / "native" / "Cargo.toml").read_text())["workspace"]["package"]
    assert metadata["Name"] == "ophion"
    assert metadata["Version"] == ophion.__version__ == project["version"] == cargo["version"]
    assert metadata["License-Expression"] == cargo["license"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_all("Classifier") == project["classifiers"]
    assert not [line for line in project["classifiers"] if line.startswith("License ::")]


def installed(package: Path, folder: Path) -> Path:
    """Install this package and the locked dependencies in a new virtual environment."""
    venv.create(folder, with_pip=True)
    # reuse the dependencies of this build, so that only Ophion's own crates are compiled again
    environ = {**clean_environment(), "CARGO_TARGET_DIR": str(ROOT / "native" / "target")}
    locked = ["--require-hashes", "--only-binary=:all:", "-r", str(ROOT / "requirements.lock")]
    for arguments in (["install", "-q", *locked], ["install", "-q", "--no-deps", str(package)], ["check"]):
        done = subprocess.run(
            [str(folder / "bin" / "pip"), "--disable-pip-version-check", *arguments],
            env=environ,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def clean_environment() -> dict[str, str]:
    """Return an environment without variables that lead to this checkout."""
    dropped = ("OPHION_", "PANTHEON_", "BESU_", "PYTHON", "VIRTUAL_ENV", "MAKE")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


def expect_working(environment: Path, folder: Path) -> None:
    def run(*command: str | Path) -> str:
        done = subprocess.run(
            [*map(str, command)], env=clean_environment(), cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    programs = environment / "bin"
    assert f"ophion/v{ophion.__version__}/" in run(programs / "ophion", "--version")
    where = run(programs / "python", "-c", "import ophion, ophion._native; print(ophion.__file__)")
    assert where.startswith(str(environment))
    answers = run(programs / "python", "-c", OUTSIDER, folder / "data", *package_files())
    assert re.search(r"'result': '0x[0-9a-f]{64}'", answers)
    assert "{'data': {'block': {'number':" in answers


def test_the_wheel_works_where_nothing_else_is(packages: Path, tmp_path: Path) -> None:
    wheel = the_one(packages, "*.whl")
    assert wheel.name.startswith(f"ophion-{ophion.__version__}-cp311-abi3-")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        expect_metadata(archive.read(metadata).decode())
        assert archive.read(next(name for name in names if name.endswith("licenses/LICENSE")))
    assert {f"ophion/{name}" for name in package_files()} <= set(names)
    assert "ophion/_native.abi3.so" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]
    expect_working(installed(wheel, tmp_path / "empty"), tmp_path)


def test_the_source_package_is_complete(packages: Path) -> None:
    source = the_one(packages, "*.tar.gz")
    top = f"ophion-{ophion.__version__}"
    with tarfile.open(source) as archive:
        names = archive.getnames()
        metadata = archive.extractfile(f"{top}/PKG-INFO")
        assert metadata is not None
        expect_metadata(metadata.read().decode())
    top_files = [ROOT / name for name in ("LICENSE", "README.md", "pyproject.toml", "native/Cargo.lock")]
    crates = [path for path in (ROOT / "native").glob("*/**/*") if path.suffix in (".rs", ".toml")]
    python = list((ROOT / "src" / "ophion").rglob("*.py"))
    ours = (path.relative_to(ROOT).as_posix() for path in [*top_files, *crates, *python])
    needed = [name for name in ours if not name.startswith("native/target/")]
    needed += [f"src/ophion/{name}" for name in package_files()]
    assert [name for name in needed if f"{top}/{name}" not in names] == []
    assert not [name for name in names if "/target/" in name or name.endswith(".so")]


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("OPHION_PACKAGES") != "all", reason="takes minutes: OPHION_PACKAGES=all")
def test_the_source_package_works_where_nothing_else_is(packages: Path, tmp_path: Path) -> None:
    expect_working(installed(the_one(packages, "*.tar.gz"), tmp_path / "empty"), tmp_path)


def test_the_unit_is_one_that_systemd_understands(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    text = (SYSTEMD / "ophion.service").read_text()
    # systemd checks that the program exists, so replace its path, because the program is not installed here
    unit = tmp_path / "ophion.service"
    unit.write_text(text.replace("/opt/ophion/bin/ophion", sys.executable))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_environment_file_holds_options_of_a_node() -> None:
    lines = (SYSTEMD / "ophion.env").read_text().splitlines()
    given = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#?OPHION_\w+=", line))
    specs = specs_of(NodeConfig)
    known = {f"OPHION_{name.upper().replace('-', '_')}" for spec in specs for name in spec.names}
    assert sorted(set(given) - known) == []
    active = dict(line.split("=", 1) for line in lines if line.startswith("OPHION_"))
    loaded = load(NodeConfig, read_environment(active, specs))
    # the configuration has no problem except the missing genesis file
    assert [problem for problem in problems_of(loaded.config) if "genesis" not in problem] == []
    unit = (SYSTEMD / "ophion.service").read_text()
    assert active["OPHION_DATA_PATH"] == "/var/lib/ophion"
    assert "StateDirectory=ophion" in unit
