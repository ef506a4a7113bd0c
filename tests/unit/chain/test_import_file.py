"""Tests block files: the public chain with proof of work, continuation, bad blocks, damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.chain import import_file
from ophion.chain.events import ChainEvent
from ophion.chain.import_file import BlockFileImport, ImportProgress
from ophion.chainspec.genesis import parse_genesis
from ophion.errors import CommandError, DecodeError, InvalidBlock, OphionError, UnknownParent
from ophion.runtime.clock import SystemClock
from tests.conftest import DATA, shared_path
from tests.unit.chain.workshop import Workshop, file_of, workshop

PUBLIC = DATA / "original-chain"


def run(shop: Workshop, *paths: Path, **options: int) -> ImportProgress:
    return BlockFileImport(shop.core, SystemClock(), None, **options).run(paths)


def test_a_public_chain_with_real_work_is_imported_to_its_head(tmp_path: Path) -> None:
    genesis = parse_genesis((PUBLIC / "genesis.json").read_bytes())
    with workshop(tmp_path, genesis) as shop:
        done = run(shop, PUBLIC / "test.blocks")
        assert (done.blocks, done.known, done.number) == (32, 1, 32)
        assert done.bytes_done == done.bytes_total == (PUBLIC / "test.blocks").stat().st_size
        assert shop.chain.head.hash.hex() == "71d59849ddd98543bdfbe8548f5eed559b07b8aaf196369f39134500eab68e53"
        again = run(shop, PUBLIC / "test.blocks")
        assert (again.blocks, again.known, again.outside) == (0, 33, 0)


def test_the_standard_chain_of_all_forks_is_imported_to_its_head(tmp_path: Path) -> None:
    folder = shared_path("fixtures", "rpc-standard")
    genesis = parse_genesis((folder / "genesis.json").read_bytes())
    # the first blocks have no valid proof of work, and a development network does not check it
    genesis = replace(genesis, spec=replace(genesis.spec, is_dev=True))
    with workshop(tmp_path, genesis) as shop:
        assert run(shop, folder / "chain.rlp").blocks == 54
        assert shop.chain.head.hash.hex() == "d226371d0b1551adb03fb52b71f08e3e11247fe9b1af994768af8cdaa8e7dcd7"


@pytest.fixture
def chain_file(tmp_path: Path) -> Path:
    path = tmp_path / "blocks.rlp"
    with workshop(tmp_path / "source") as shop:
        path.write_bytes(file_of(shop.branch(12)))
    return path


def test_small_batches_and_chunks_give_the_same_chain(
    tmp_path: Path, chain_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_BATCH_BLOCKS", 5), ("_CHUNK_BLOCKS", 2), ("_CHUNKS_AHEAD", 1)):
        monkeypatch.setattr(import_file, name, value)
    received: list[ChainEvent] = []
    with workshop(tmp_path / "target") as shop:
        shop.chain.events.listen(received.append)
        done = run(shop, chain_file)
        assert (done.blocks, done.transactions, done.gas) == (12, 12, 12 * 21_000)
        assert [event.head.number for event in received] == [5, 10, 12]


def test_several_files_continue_each_other_and_progress_is_reported(tmp_path: Path, chain_file: Path) -> None:
    content = chain_file.read_bytes()
    seen: list[tuple[int, int]] = []
    with workshop(tmp_path / "source") as shop:
        blocks = shop.branch(12)
    one, two = tmp_path / "one.rlp", tmp_path / "two.rlp"
    one.write_bytes(file_of(blocks[:6]))
    two.write_bytes(file_of(blocks[6:]))
    with workshop(tmp_path / "target") as shop:
        done = BlockFileImport(
            shop.core, SystemClock(), lambda progress: seen.append((progress.number, progress.bytes_done))
        ).run([one, two])
        assert done.blocks == 12
    assert [number for number, _ in seen] == list(range(1, 13))
    assert seen[-1][1] == len(content)


def test_a_range_of_blocks_can_be_asked_for(tmp_path: Path, chain_file: Path) -> None:
    with workshop(tmp_path / "target") as shop:
        assert run(shop, chain_file, last=4).blocks == 4
        assert run(shop, chain_file, first=5, last=7).blocks == 3
        assert shop.chain.head.number == 7
        with pytest.raises(
            UnknownParent, match="Block 10 does not connect to the existing chain. Current chain head 7"
        ):
            run(shop, chain_file, first=10)


def test_a_bad_block_stops_the_import_and_everything_before_it_stays(tmp_path: Path) -> None:
    with workshop(tmp_path / "source") as shop:
        good = shop.branch(3)
        bad = shop.block(good[2].header, state_root=bytes(32))
        path = tmp_path / "blocks.rlp"
        path.write_bytes(file_of([*good, bad, shop.block(bad.header)]))
    with workshop(tmp_path / "target") as shop:
        with pytest.raises(InvalidBlock, match="^Invalid block at block number 4 .*state root") as caught:
            run(shop, path)
        assert caught.value.hash == bad.header.hash
        del caught  # drop the exception, because its traceback refers to the execution, which keeps the database open
        assert shop.chain.head == good[2].header
    with workshop(tmp_path / "target") as shop:
        assert shop.chain.head == good[2].header


def test_a_file_of_another_chain_is_refused(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop, pytest.raises(CommandError, match="belongs to another chain"):
        run(shop, PUBLIC / "test.blocks")


def test_a_missing_file_is_refused_before_anything_is_read(tmp_path: Path, chain_file: Path) -> None:
    with workshop(tmp_path / "target") as shop:
        with pytest.raises(CommandError, match="Could not find file to import"):
            run(shop, chain_file, tmp_path / "nothing")
        assert shop.chain.head.number == 0


def test_a_truncated_file_names_the_position_and_keeps_whole_blocks(tmp_path: Path, chain_file: Path) -> None:
    content = chain_file.read_bytes()
    chain_file.write_bytes(content[:-10])
    with workshop(tmp_path / "target") as shop:
        with pytest.raises(DecodeError, match=r"blocks\.rlp at byte \d+: the file ends inside a block"):
            run(shop, chain_file)
        assert shop.chain.head.number == 11


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_changed_byte_or_cut_gives_one_clear_error(tmp_path: Path, chain_file: Path, data: st.DataObject) -> None:
    original = chain_file.with_suffix(".whole")
    if not original.exists():
        original.write_bytes(chain_file.read_bytes())
    content = bytearray(original.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[position] ^= data.draw(st.integers(1, 255))
    else:
        del content[position:]
    damaged = tmp_path / "damaged.rlp"
    damaged.write_bytes(bytes(content))
    target = tmp_path / f"target{position}-{len(content)}-{hash(bytes(content))}"
    with workshop(target) as shop:
        try:
            run(shop, damaged)
        except OphionError as error:
            assert "\n" not in str(error)
        assert shop.chain.head.number <= 12
        assert shop.chain.store.head() == (shop.chain.head.hash, shop.chain.head.number)
