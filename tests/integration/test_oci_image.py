"""The image archive has correct digests, and the files, links and owners of the root file system."""

from __future__ import annotations

import grp
import gzip
import hashlib
import importlib.util
import io
import json
import os
import pwd
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT

FOLDER = ROOT / "packaging" / "oci"


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("oci_image", FOLDER / "image.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _root(folder: Path) -> Path:
    (folder / "opt/besu/bin").mkdir(parents=True)
    (folder / "opt/ophion").write_text("program")
    (folder / "opt/besu/bin/besu").symlink_to("/opt/ophion")
    return folder


def test_the_archive_is_an_oci_layout(tmp_path: Path) -> None:
    target = tmp_path / "image.tar"
    command = [sys.executable, str(FOLDER / "image.py"), str(_root(tmp_path / "root")), str(target)]
    digest = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    with tarfile.open(target) as archive:
        files = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    for name, content in files.items():
        if name.startswith("blobs/sha256/"):
            assert name.rpartition("/")[2] == hashlib.sha256(content).hexdigest()
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["digest"] == digest

    def blob(one: dict[str, Any]) -> bytes:
        found = files["blobs/sha256/" + one["digest"].removeprefix("sha256:")]
        assert len(found) == one["size"]
        return found

    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    layer = gzip.decompress(blob(manifest["layers"][0]))
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]
    assert config["config"]["Entrypoint"] == ["besu-entry.sh"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as members:
        assert members.getmember("opt/besu/bin/besu").linkname == "/opt/ophion"
        assert members.getmember("opt/ophion").mtime == 0


def test_the_same_files_give_the_same_image(tmp_path: Path) -> None:
    image = _module()
    first, second = (image.write_image(_root(tmp_path / name), tmp_path / f"{name}.tar") for name in ("a", "b"))
    assert first == second


def test_the_configuration_is_that_of_the_image_of_besu() -> None:
    config = _module().CONFIG
    variables = dict(text.split("=", 1) for text in config["Env"])
    assert variables["PATH"].startswith("/opt/besu/bin:")
    assert variables["BESU_RPC_HTTP_HOST"] == variables["BESU_RPC_WS_HOST"] == "0.0.0.0"
    assert variables["BESU_PID_PATH"] == "/tmp/pid"
    assert config["Healthcheck"]["Test"] == ["CMD-SHELL", "[ -f /tmp/pid ]"]
    assert {"8545/tcp", "8546/tcp", "8547/tcp", "8550/tcp", "8551/tcp", "30303/tcp"} <= set(config["ExposedPorts"])


def test_the_names_of_this_machines_users_stay_out_of_the_image(tmp_path: Path) -> None:
    layer, _ = _module().layer_of(_root(tmp_path))
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer))) as members:
        assert {(member.uname, member.gname) for member in members} == {("", "")}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _entry(tmp_path: Path, program: str) -> Path:
    """Return the entry point with a program of the test in place of /opt/besu/bin/besu."""
    besu = tmp_path / "besu"
    besu.write_text("#!/bin/sh\n" + program)
    besu.chmod(0o755)
    entry = tmp_path / "besu-entry.sh"
    text = (FOLDER / "besu-entry.sh").read_text()
    entry.write_text(text.replace("/opt/besu/bin/besu", str(besu)).replace("/opt/besu", str(tmp_path / "home")))
    return entry


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ('--host-allowlist="*"', "--host-allowlist=*"),
        ("--rpc-http-api='ETH,NET'", "--rpc-http-api=ETH,NET"),
        ("--p2p-host=$ADDRESS", "--p2p-host=192.0.2.7"),
        ("--identity=`echo one`", "--identity=one"),
        ("--identity=two words", "--identity=two words"),
        ("--rpc-http-cors-origins=*", "--rpc-http-cors-origins=*"),
        ("a\\b", "a\\b"),
        ("", ""),
    ],
)
def test_the_entry_point_reads_quotes_as_the_one_of_besu(tmp_path: Path, word: str, expected: str) -> None:
    entry = _entry(tmp_path, 'printf "<%s>" "$@"\n')
    environ = {**os.environ, "BESU_USER_NAME": "root", "ADDRESS": "192.0.2.7"}
    command = ["sh", str(entry), "--first", word, "--last"]
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=environ, cwd=tmp_path)
    assert result.stdout == f"<--first><{expected}><--last>"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change the user")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_entry_point_gives_paths_to_the_user_and_starts_the_node_as_this_user(
    open_folder: Path, umask: int
) -> None:
    tmp_path = open_folder
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    (tmp_path / "volume").mkdir(mode=0o700)
    (tmp_path / "volume/link").symlink_to(secret)
    (tmp_path / "volume/key").touch(mode=0o400)
    genesis = tmp_path / "genesis.json"
    genesis.touch(mode=0o600)
    program = f"""case $1 in --print-paths-and-exit=daemon)
        echo something else
        echo PERMISSION_CHECK_PATH:{tmp_path}/volume:READ_WRITE
        echo PERMISSION_CHECK_PATH:{tmp_path}/a:new/data:READ_WRITE
        echo PERMISSION_CHECK_PATH:{genesis}:READ
        exit 3;;
    esac
    echo "$(id -un) $(id -gn) $HOME $*"
    test -w {tmp_path}/volume/key && test -w {tmp_path}/a:new/data && test -r {genesis}
    """
    environ = {**os.environ, "BESU_USER_NAME": "daemon"}
    command = ["sh", str(_entry(tmp_path, program)), "--data-path=x"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environ, umask=umask)
    assert (result.returncode, result.stderr) == (0, "")
    daemon = pwd.getpwnam("daemon")
    assert result.stdout == f"daemon {grp.getgrgid(daemon.pw_gid).gr_name} {daemon.pw_dir} --data-path=x\n"
    assert secret.stat().st_uid == 0
    assert secret.stat().st_mode & 0o777 == 0o600


def test_a_link_named_besu_accepts_the_command_line_of_besu(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("ophion")
    if not program.exists():
        program = tmp_path / "ophion"
        program.write_text(f"#!{sys.executable}\nfrom ophion.__main__ import main\nraise SystemExit(main())\n")
        program.chmod(0o755)
    (tmp_path / "besu").symlink_to(program)
    command = [str(tmp_path / "besu"), "operator", "generate-log-bloom-cache"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
