"""Databases that are in use, newer or damaged: commands report one clear error and cause no further damage."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.data.small_chain.make import make_chain
from tests.fuzz.small_chain import HEAD, check, import_arguments, import_small
from tests.integration.command import OPHION, Finished, environment, ophion

PAGE = 4096


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data path with the first twenty blocks."""
    data = tmp_path_factory.mktemp("imported") / "data"
    import_small(data, "--end-block=20").succeeded()
    return data


@pytest.fixture
def data(imported: Path, tmp_path: Path) -> Path:
    """Return a copy of the imported data path, which the test damages."""
    shutil.copytree(imported, tmp_path / "data")
    return tmp_path / "data"


def database(data: Path) -> Path:
    return data / "database" / "data.mdb"


# --- another process ----------------------------------------------------------------------------


def test_a_second_process_during_an_import(tmp_path: Path) -> None:
    genesis, blocks = make_chain(tmp_path / "chain", 400)
    data = tmp_path / "data"
    command = import_arguments(data, blocks, genesis)
    first = subprocess.Popen([*OPHION, *command], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 60
        while not database(data).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)
        in_use = f"The data path {data} is in use by process {first.pid}."
        ophion(*command).failed(in_use)
        check(data).failed(in_use)
    finally:
        first.send_signal(signal.SIGCONT)
        out, _ = first.communicate(timeout=120)
    assert first.returncode == 0
    assert "Head is block 400 " in out.decode()
    assert "No damage found up to block 400 " in check(data).succeeded().out


# --- a newer version ----------------------------------------------------------------------------


def test_a_version_that_is_not_ours(data: Path) -> None:
    before = database(data).read_bytes()
    metadata = data / "database" / "DATABASE_METADATA.json"
    metadata.write_text('{"version":2}')
    for done in (check(data), import_small(data)):
        done.failed("has version 2; this Ophion reads version 1")
    metadata.write_text("[" * 10**6)
    check(data).failed("DATABASE_METADATA.json is damaged")
    assert database(data).read_bytes() == before


def test_a_newer_layout_inside_the_database(data: Path) -> None:
    content = database(data).read_bytes()
    ours = content[content.index(b"layout") + len(b"layout")]
    # the next layout is that of a database whose old bodies are not downloaded yet
    newer = content.replace(b"layout%c" % ours, b"layout%c" % (ours + 2))
    database(data).write_bytes(newer)
    for done in (check(data), import_small(data)):
        done.failed(f"the database has layout {ours + 2}, this program knows layout {ours + 1}")
    assert database(data).read_bytes() == newer


def test_an_older_layout_is_brought_up_to_date(data: Path) -> None:
    content = database(data).read_bytes()
    ours = content[content.index(b"layout") + len(b"layout")]
    database(data).write_bytes(content.replace(b"layout%c" % ours, b"layout%c" % (ours - 1)))
    check(data).succeeded()
    import_small(data).succeeded()
    check(data).succeeded()
    assert b"layout%c" % ours in database(data).read_bytes()


# --- damage -------------------------------------------------------------------------------------


def explained(done: Finished) -> Finished:
    """Check that a command failed with a clear error."""
    assert done.code == 1, done
    assert "Traceback" not in done.err
    assert "Internal error" not in done.err
    assert "panicked" not in done.err
    assert (done.out + done.err).strip()
    return done


@pytest.mark.parametrize("size", [0, PAGE, 70_001, -PAGE])
def test_a_file_that_was_cut(data: Path, size: int) -> None:
    content = database(data).read_bytes()
    cut = content[:size] if size else b""
    database(data).write_bytes(cut)
    looked = check(data)
    if size < 0 and looked.code == 0:
        return  # the damaged bytes belong to no used page
    explained(looked)
    assert database(data).read_bytes() == cut
    done = import_small(data)
    if 0 <= size <= PAGE:
        # a database file of at most one page holds no data, so the import starts with an empty file
        assert f"Head is {HEAD}" in done.succeeded().out
    else:
        explained(done)


def test_noise_instead_of_a_database(data: Path) -> None:
    database(data).write_bytes(random.Random(1).randbytes(50 * PAGE))
    for done in (check(data), import_small(data)):
        assert "Restore it from a copy, or import the chain anew." in explained(done).err


def test_pages_that_were_lost_or_overwritten(data: Path) -> None:
    content = database(data).read_bytes()
    pages = len(content) // PAGE
    source = random.Random(7)
    found = 0
    for attempt in range(4):
        page = source.randrange(2, pages)
        new = bytes(PAGE) if attempt % 2 else source.randbytes(PAGE)
        database(data).write_bytes(content[: page * PAGE] + new + content[(page + 1) * PAGE :])
        before = database(data).read_bytes()
        looked = check(data)
        assert database(data).read_bytes() == before
        if looked.code != 0:
            found += 1
            explained(looked)
            # the import may succeed, because it may not read the damaged page
            done = import_small(data)
            if done.code != 0:
                explained(done)
    assert found >= 2


def test_a_table_whose_name_was_lost_is_not_made_anew(data: Path) -> None:
    content = database(data).read_bytes()
    assert b"preimages" in content
    database(data).write_bytes(content.replace(b"preimages", b"preimageZ"))
    assert "the table 'preimages' is missing" in explained(check(data)).err
    assert "the table 'preimages' is missing" in explained(import_small(data)).err


def test_a_catalogue_without_the_table_that_says_so_is_damage_too(data: Path) -> None:
    content = database(data).read_bytes()
    for name in (b"meta\0", b"headers"):
        assert name in content
    lost = content.replace(b"headers", b"headerZ").replace(b"bodies", b"bodieZ")
    database(data).write_bytes(lost)
    for done in (check(data), import_small(data)):
        assert "the tables 'headers', 'bodies' are missing" in explained(done).err
    assert database(data).read_bytes() == lost
