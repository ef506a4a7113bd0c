"""Full, broken and read-only disks: commands report one clear error and damage nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.fuzz.faults import Faults
from tests.fuzz.small_chain import HEAD, check, import_arguments, import_small
from tests.integration.command import OPHION, environment, ophion

PAGE = 4096
FULL = ("no space left", "disk is full")


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Faults:
    """Build the fault injection library."""
    return Faults.built(tmp_path_factory.mktemp("faults"))


def own_file_systems(script: str) -> list[str]:
    """Return a command that runs `script` and then another command. Private mounts end with the command."""
    for way in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        try:
            tried = subprocess.run([*way, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
        except FileNotFoundError:
            break
        if tried.returncode == 0:
            return [*way, "sh", "-c", f'{script} && exec "$@"', "sh"]
    pytest.skip("this machine lets nobody mount a file system of one's own")


def test_a_full_disk_at_any_write(tmp_path: Path, faults: Faults) -> None:
    moments = faults.moments(tmp_path, sampled=5)
    for position, moment in enumerate(moments):
        kind = ("full", "short", "broken")[position % 3] if os.environ.get("FAULTS") != "all" else "short"
        data = tmp_path / f"{kind}-{moment}"
        done = import_small(data, env=faults.environment(kind, data, moment)).failed()
        assert last_line(done.err), done
        if kind == "full":
            assert any(words in done.err.lower() for words in FULL), done.err
        assert f"Head is {HEAD}" in import_small(data).succeeded().out
    assert f"No damage found up to {HEAD}." in check(data).succeeded().out


def test_a_write_transaction_is_on_the_disk_before_it_counts(tmp_path: Path, faults: Faults) -> None:
    pending = False
    transactions = 0
    calls = faults.log(tmp_path / "data", tmp_path / "log")
    made = next(index for index, call in enumerate(calls) if call[2] == "data.mdb")
    for call, place, file in calls[made + 1 :]:
        if file != "data.mdb":
            continue
        if call in ("fdatasync", "fsync"):
            pending = False
        elif 0 <= place < 2 * PAGE:
            # a write to one of the two meta pages commits a transaction of LMDB
            assert not pending, "data that may not be on the disk yet is made to count"
            assert call.endswith("+sync"), "the import ends before its last transaction is on the disk"
            transactions += 1
        else:
            pending = True
    assert transactions >= 3
    assert not pending


@pytest.mark.parametrize("size_kib", [8, 132])
def test_a_file_system_that_fills_up(tmp_path: Path, size_kib: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    prefix = own_file_systems(f"mount -t tmpfs -o size={size_kib}k none {disk}")
    command = " ".join(OPHION)
    imports = f"{command} {' '.join(import_arguments(disk / 'data'))}"
    script = (
        f"{imports}; echo code $? 1>&2;"
        f"mount -o remount,size=16m {disk};"
        f"{imports} && {command} storage check --data-path={disk / 'data'}"
    )
    done = subprocess.run([*prefix, "sh", "-c", script], env=environment(), capture_output=True, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    first, code, later = err.partition("code 1\n")
    assert code, err
    assert any(words in last_line(first).lower() for words in (*FULL, "disk fails")), first
    assert "Traceback" not in err
    assert not later
    assert f"Head is {HEAD}" in out
    assert f"No damage found up to {HEAD}." in out


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    # a file size limit sends SIGXFSZ, which would kill the process without a message
    shell = ["sh", "-c", 'ulimit -f 200 && exec "$@"', "sh"]
    data = tmp_path / "data"
    import_small(data, prefix=shell).failed("stored: block 0 ")
    assert "No damage found up to block 0 " in check(data).succeeded().out
    assert f"Head is {HEAD}" in import_small(data).succeeded().out
    target = tmp_path / "out.rlp"
    small = ["sh", "-c", 'ulimit -f 8 && exec "$@"', "sh"]
    ophion("blocks", "export", f"--to={target}", f"--data-path={data}", prefix=small).failed("Unable to write")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no /dev/full")
def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    shell = ["sh", "-c", 'exec "$@" >/dev/full', "sh"]
    ophion("--help", prefix=shell).failed("Unable to write to standard output: No space left on device")
    closed = ["sh", "-c", 'exec "$@" >&-', "sh"]
    ophion("--version", prefix=closed).succeeded()


def test_a_read_only_data_path(tmp_path: Path) -> None:
    data = tmp_path / "data"
    import_small(data).succeeded()
    prefix = own_file_systems(f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}")
    for path in (data, tmp_path / "absent"):
        import_small(path, prefix=prefix).failed("cannot be used: it cannot be written (Read-only file system)")
    assert f"No damage found up to {HEAD}." in check(data, prefix=prefix).succeeded().out
    assert f"Head is {HEAD}" in import_small(data).succeeded().out


@pytest.mark.parametrize("place", ["", "lock", "database", "database/data.mdb", "database/DATABASE_METADATA.json"])
def test_another_file_type_instead_of_a_file(tmp_path: Path, place: str) -> None:
    data = tmp_path / "data"
    if place in ("", "database"):
        (data / place).parent.mkdir(exist_ok=True)
        (data / place).write_text("not a folder")
    else:
        (data / place).mkdir(parents=True)
    done = import_small(data).failed(str(data))
    # an invalid data path is a command-line error, so the usage follows the message
    said = done.err.partition("\n\nUsage: ")[0] if not place else done.err
    assert len(said.strip().splitlines()) == 1


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    name = tmp_path / ("x" * 5000)
    for done in (check(name), import_small(tmp_path / "data", blocks=name)):
        assert "File name too long" in done.failed().err


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can become somebody else")
def test_a_data_path_of_another_user(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # other users may enter this folder, but not tmp_path
        Path(folder).chmod(0o755)
        closed = Path(folder) / "closed"
        closed.mkdir(mode=0o700)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run(
            [*nobody, *OPHION, "--version"], env=environment(), capture_output=True, check=False
        ).returncode:
            pytest.skip("others may not run Python here")
        for path in (closed / "data", Path(folder) / "data"):
            import_small(path, prefix=nobody).failed("cannot be used: it cannot be written (Permission denied)")
        check(closed / "data", prefix=nobody).failed("Permission denied")


def last_line(text: str) -> str:
    """Return the last line of a text."""
    return text.strip().splitlines()[-1]
