"""The image archive has correct digests, and the files, links and owners of the root file system."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

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
