"""Tests import, export and maintenance of chains with the real command."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ophion.node.datadir import DataDirectory
from ophion.primitives import rlp
from tests.conftest import DATA, shared_path
from tests.fuzz.small_chain import import_arguments
from tests.integration.command import OPHION, Finished, environment, ophion

CHAIN = DATA / "original-chain"
BLOCKS = CHAIN / "test.blocks"
GENESIS = f"--genesis-file={CHAIN / 'genesis.json'}"
HEAD = "block 32 (0x71d59849ddd98543bdfbe8548f5eed559b07b8aaf196369f39134500eab68e53)"
SKIP_WORK = "--skip-pow-validation-enabled"


def import_chain(data: Path, *arguments: str, file: Path = BLOCKS) -> Finished:
    return ophion("blocks", "import", f"--from={file}", GENESIS, f"--data-path={data}", *arguments)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data path with the chain, imported with verification of the proof of work."""
    data = tmp_path_factory.mktemp("imported") / "data"
    assert f"Head is {HEAD}" in import_chain(data).succeeded().out
    return data


@pytest.fixture
def copied(imported: Path, tmp_path: Path) -> Path:
    """Return a copy of the data path that the test may damage."""
    shutil.copytree(imported, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_chain_is_exported_as_it_came(imported: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.rlp"
    ophion("blocks", "export", f"--to={target}", f"--data-path={imported}").succeeded()
    assert target.read_bytes() == BLOCKS.read_bytes()


def test_an_export_in_parts_is_added_up(imported: Path, tmp_path: Path) -> None:
    target, path = tmp_path / "out.rlp", f"--data-path={imported}"
    target.write_text("to be overwritten")
    ophion("blocks", "export", f"--to={target}", path, "--end-block=10").succeeded()
    ophion(path, "blocks", "export", f"--to={target}", "--start-block=10", "--end-block=20").succeeded()
    ophion("blocks", path, "export", f"--to={target}", "--start-block=20", "--end-block=999").succeeded()
    assert target.read_bytes() == BLOCKS.read_bytes()


def test_blocks_are_made_from_a_description(tmp_path: Path) -> None:
    described = tmp_path / "blocks.json"
    described.write_text('{"blocks":[{"extraData":"0x12"},{"coinbase":"0x0000000000000000000000000000000000000001"}]}')
    made = ophion("blocks", "import", "--format=JSON", f"--from={described}", f"--data-path={tmp_path / 'data'}")
    assert "Imported 2 blocks with 0 transactions" in made.succeeded().out
    assert "Head is block 2" in made.out


def test_a_second_import_finds_everything_known(imported: Path) -> None:
    done = import_chain(imported).succeeded()
    assert "Imported 0 blocks" in done.out
    assert "33 known already" in done.out


def test_a_part_of_a_chain_can_be_imported_and_continued(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert "Head is block 9 " in import_chain(data, SKIP_WORK, "--end-block=10").succeeded().out
    import_chain(data, SKIP_WORK, "--start-block=12").failed(
        "Block 12 does not connect to the existing chain. Current chain head 9"
    )
    done = import_chain(data, SKIP_WORK, f"--from={BLOCKS}").succeeded()
    assert f"Head is {HEAD}" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--start-block=-1"], "Invalid value for option '--start-block': -1 is less than 0"),
        (["--start-block=5", "--end-block=5"], "--end-block (5) must be greater than --start-block (5)"),
        (["--start-block=33"], "There is no block 33 to export: the head is block 32."),
        (["--to=/"], "Unable to write /"),
    ],
)
def test_an_export_that_cannot_be_is_refused(
    imported: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    target = [] if any(argument.startswith("--to") for argument in arguments) else [f"--to={tmp_path / 'out.rlp'}"]
    ophion("blocks", "export", f"--data-path={imported}", *target, *arguments).failed(message)


def test_an_export_of_nothing_is_refused(tmp_path: Path) -> None:
    ophion("blocks", "export", "--to=x", f"--data-path={tmp_path / 'absent'}").failed("There is no chain in ")
    assert not (tmp_path / "absent").exists()
    with DataDirectory.open(tmp_path / "empty") as directory:
        directory.store()
    ophion("blocks", "export", "--to=x", f"--data-path={tmp_path / 'empty'}").failed("the database is empty")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from=absent.rlp"], "Could not find file to import: absent.rlp"),
        (["--from=/"], "Could not find file to import: /"),
        (["--format=json"], "Invalid block description"),
        (["--format=json", "--start-block=1"], "--start-block and --end-block belong to files of RLP blocks."),
        (["--end-block=0"], "--end-block (0) must be greater than --start-block (0)"),
    ],
)
def test_an_import_that_cannot_be_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    import_chain(tmp_path / "data", *arguments).failed(message)


def test_another_genesis_is_refused_with_both_hashes(imported: Path, tmp_path: Path) -> None:
    done = ophion("blocks", "import", f"--from={BLOCKS}", "--network=dev", f"--data-path={imported}")
    done.failed("Supplied genesis block does not match stored chain data.")
    assert done.err.count("0x") == 2
    ophion("blocks", "import", f"--from={BLOCKS}", f"--data-path={tmp_path / 'dev'}").failed(
        "The file belongs to another chain"
    )


def test_a_bad_block_is_named_and_everything_before_it_stays(tmp_path: Path) -> None:
    content = bytearray(BLOCKS.read_bytes())
    content[-40] ^= 1  # the changed byte is in the seal or in the body of the last block
    bad = tmp_path / "bad.rlp"
    bad.write_bytes(content)
    done = import_chain(tmp_path / "data", SKIP_WORK, file=bad).failed("at block number 32 (0x")
    assert "stored: block 31 " in done.err
    assert f"Head is {HEAD}" in import_chain(tmp_path / "data", SKIP_WORK).succeeded().out


def test_a_wrong_seal_is_found(tmp_path: Path) -> None:
    content = BLOCKS.read_bytes()
    start = rlp.item_end(content, 0)
    block = rlp.decode(content[start : rlp.item_end(content, start)])
    assert isinstance(block, list)
    assert isinstance(block[0], list)
    block[0][-1] = bytes(8)  # the last header field is the nonce
    bad = tmp_path / "bad.rlp"
    bad.write_bytes(rlp.encode(block))
    import_chain(tmp_path / "data", file=bad).failed("Invalid header at block number 1 (0x", "mix hash")
    assert "Head is block 1 " in import_chain(tmp_path / "trusting", SKIP_WORK, file=bad).succeeded().out


def test_no_change_of_a_file_goes_unnoticed_or_breaks_the_command(tmp_path: Path) -> None:
    content = BLOCKS.read_bytes()
    random_source = random.Random(2018)
    bad = tmp_path / "bad.rlp"
    for attempt in range(8):
        position = random_source.randrange(len(content))
        if attempt % 2:
            bad.write_bytes(content[:position])
        else:
            bad.write_bytes(content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :])
        import_chain(tmp_path / f"data{attempt}", SKIP_WORK, file=bad).failed()


def test_what_lies_on_disk_is_shown_and_checked(imported: Path) -> None:
    usage = ophion("storage", "usage", f"--data-path={imported}").succeeded().out
    assert usage.startswith("table")
    assert "headers" in usage
    assert "on disk" in usage
    assert f"No damage found up to {HEAD}." in ophion("storage", "check", f"--data-path={imported}").succeeded().out


def test_damage_is_named(copied: Path) -> None:
    database = copied / "database" / "data.mdb"
    content = bytearray(database.read_bytes())
    header = BLOCKS.read_bytes()[-300:-200]
    position = bytes(content).find(header[:40])
    assert position > 0
    content[position] ^= 1
    database.write_bytes(content)
    done = ophion("storage", "check", f"--data-path={copied}")
    assert done.code == 1
    assert "damaged" in done.out
    assert "Traceback" not in done.err


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path):
        import_chain(tmp_path).failed("is in use by process")


def test_a_newer_database_is_refused_and_left_alone(copied: Path) -> None:
    metadata = copied / "database" / "DATABASE_METADATA.json"
    metadata.write_text('{"version":2}')
    before = (copied / "database" / "data.mdb").read_bytes()
    import_chain(copied).failed("has version 2; this Ophion reads version 1")
    ophion("storage", "check", f"--data-path={copied}").failed("has version 2")
    assert (copied / "database" / "data.mdb").read_bytes() == before


def test_a_plain_file_is_no_data_path(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    import_chain(plain).failed("it is a file, or lies under one")


def namespaced(script: str) -> list[str]:
    """Return a command that runs another command in a mount namespace. Skips the test if the machine forbids
    namespaces.
    """
    prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh"]
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("this machine allows no file systems of one's own (unshare)")
    return prefix


def test_a_read_only_data_path_is_one_clear_error_but_can_be_looked_at(copied: Path) -> None:
    prefix = namespaced(f"mount --bind {copied} {copied} && mount -o remount,bind,ro {copied}")
    path = f"--data-path={copied}"
    ophion("blocks", "import", f"--from={BLOCKS}", GENESIS, path, prefix=prefix).failed(
        "cannot be used: it cannot be written (Read-only file system)"
    )
    assert "headers" in ophion("storage", "usage", path, prefix=prefix).succeeded().out


def test_a_full_disk_is_one_clear_error_and_nothing_is_damaged(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    prefix = namespaced(f"mount -t tmpfs -o size=160k none {small}")
    script = (
        f"{' '.join(OPHION)} blocks import --from={BLOCKS} {GENESIS} --data-path={small} {SKIP_WORK}; echo code $?;"
        f"mount -o remount,size=16m {small};"
        f"{' '.join(OPHION)} storage check --data-path={small} &&"
        f"{' '.join(OPHION)} blocks import --from={BLOCKS} {GENESIS} --data-path={small} {SKIP_WORK}"
    )
    done = subprocess.run([*prefix, "sh", "-c", script], env=environment(), capture_output=True, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "code 1\n" in out
    assert "Traceback" not in err
    assert "no space left" in err.lower() or "disk is full" in err.lower()
    assert f"Head is {HEAD}" in out, f"{out}\n{err}"


def test_an_import_survives_being_killed(tmp_path: Path) -> None:
    chain = shared_path("bench", "clique-30k")
    command = [*OPHION, *import_arguments(tmp_path / "data", chain / "blocks.rlp", chain / "genesis.json")]
    random_source = random.Random(30_017)
    for _ in range(12):
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random_source.uniform(0.15, 0.9))
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, env=environment(), capture_output=True, check=True)
    head = "Head is block 52 (0x4358c87979b3bd18ad582e3077bde43a8c83e97d41622f0bd7def42f559346e1)"
    assert head in done.stdout.decode()
    ophion("storage", "check", f"--data-path={tmp_path / 'data'}").succeeded()
