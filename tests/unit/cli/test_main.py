"""Tests the command-line parser and dispatcher, in process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ophion.cli import main as cli
from ophion.cli.command_table import FAMILIES, commands_of
from ophion.cli.main import main
from ophion.errors import StorageError
from ophion.runtime.options import specs_of

KEY = "0x8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"  # this key is a published test key
ADDRESS = "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPHION_LOGGING", "OPHION_CONFIG_FILE", "OPHION_DATA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_text(KEY)


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(argv)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    "argv",
    [
        ["--data-path=.", "public-key", "export-address"],
        ["public-key", "--data-path=.", "export-address"],
        ["public-key", "export-address", "--data-path", "."],
        ["public-key", "export-address", "--node-private-key-file=key"],
    ],
)
def test_global_options_stand_before_or_after_the_command(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert run(capsys, *argv) == (0, f"{ADDRESS}\n", "")


def test_the_environment_and_the_file_set_global_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("config.toml").write_text('data-path = "."\n')
    assert run(capsys, "--config-file=config.toml", "public-key", "export-address")[1] == f"{ADDRESS}\n"
    monkeypatch.setenv("OPHION_CONFIG_FILE", "config.toml")
    assert run(capsys, "public-key", "export-address")[1] == f"{ADDRESS}\n"
    monkeypatch.delenv("OPHION_CONFIG_FILE")
    monkeypatch.setenv("PANTHEON_DATA_PATH", ".")
    assert run(capsys, "public-key", "export-address")[1] == f"{ADDRESS}\n"


def test_all_problems_are_reported_together_with_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.toml").write_text("colour = 1\n")
    code, out, err = run(
        capsys, "--config-file=config.toml", "--network-id=x", "rlp", "encode", "--typ=A", "--type=B", "word"
    )
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "Unknown option: '--typ' (did you mean --type?)",
        "Unmatched argument: 'word'",
        "Unknown option in TOML configuration file: colour",
        "Invalid value for option '--network-id': 'x' is not a whole number",
        "Invalid value for option '--type': expected one of [IBFT_EXTRA_DATA, QBFT_EXTRA_DATA] (case-insensitive) but"
        " was 'B'",
        "",
        "Usage: ophion rlp encode [OPTIONS]",
        "Try `ophion rlp encode --help`.",
    ]


def test_values_that_do_not_go_together_are_refused_by_the_command_that_uses_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exclusive = ("--network=dev", "--genesis-file=genesis.json")
    code, _, err = run(capsys, *exclusive, "blocks", "import", "--from=chain.rlp", "--data-path=data")
    assert code == 1
    assert err.startswith("--network option and --genesis-file option can't be used at the same time.  Please refer")
    assert run(capsys, *exclusive, "public-key", "export-address", "--data-path=.")[0] == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["bloks", "import"], "Unknown command: 'bloks' (did you mean blocks?)"),
        (["blocks", "improt"], "Unknown command: 'improt' (did you mean import?)"),
        (["blocks", "import"], "Missing required option: '--from=FILE'"),
    ],
)
def test_a_mistyped_command_line_is_explained(
    capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    code, _, err = run(capsys, *argv)
    assert code == 1
    assert err.splitlines()[0] == message
    assert "Usage: ophion" in err


def test_every_command_has_help_with_its_options_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for family in FAMILIES.values():
        for command in commands_of(family).values():
            words = [family.name] if command.name == family.name else [family.name, command.name]
            code, out, err = run(capsys, *words, "--help")
            assert (code, err) == (0, "")
            assert out.startswith(f"Usage: ophion {' '.join(words)} [OPTIONS]")
            assert command.examples
            assert all(example in out for example in command.examples)
            assert all(spec.flag in out or spec.declaration.hidden for spec in specs_of(command.options))


def test_help_of_the_program_lists_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "-h")
    assert code == 0
    assert all(f"  {family.name} " in out for family in FAMILIES.values() if not family.hidden)
    assert "  -h, --help\n" in out
    assert "  --data-path=DIRECTORY\n" in out


def test_a_family_without_a_command_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "blocks")
    assert code == 0
    assert out.startswith("Usage: ophion blocks COMMAND [OPTIONS]\n")
    assert "  import  " in out


@pytest.mark.parametrize("spelling", ["Xhelp", "--Xhelp", "-X"])
def test_unstable_options_have_a_help_of_their_own(capsys: pytest.CaptureFixture[str], spelling: str) -> None:
    code, out, err = run(capsys, spelling)
    assert (code, err) == (0, "")
    assert "--Xsynchronizer-downloader-parallelism: no effect, blocks are fetched" in out
    assert "--Xrocksdb-cache-capacity" in out
    assert "Xhelp" not in run(capsys, "--help")[1]


def test_version_names_program_machine_and_python(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "blocks", "import", "-V")
    assert code == 0
    assert out.startswith("ophion/v0.1.0/")
    assert "/python3." in out


def test_validate_config_reads_the_file_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.toml").write_text('data-path = "x"\n')
    Path("bad.toml").write_text("data-pat = 1\nnetwork-id = 'x'\n")
    code, out, _ = run(capsys, "validate-config", "--config-file=good.toml")
    assert (code, out) == (
        0,
        "TOML config file is valid on basic inspection. Further dependencies between related options are checked when"
        " Ophion starts.\n",
    )
    code, _, err = run(capsys, "validate-config", "--config-file", "bad.toml")
    assert code == 1
    assert err.startswith("Unknown option in TOML configuration file: data-pat\n")
    code, _, err = run(capsys, "validate-config", "--config-file", "absent.toml")
    assert err.startswith("Unable to read TOML configuration, file not found.\n")
    code, _, err = run(capsys, "validate-config")
    assert err.startswith("Missing required option: '--config-file=FILE'\n")


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(*_: object) -> int:
        raise error

    monkeypatch.setattr(cli, "read_arguments", broken)


def test_an_expected_error_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, StorageError("the disk is full"))
    assert run(capsys) == (1, "", "the disk is full\n")


def test_a_current_directory_that_is_gone_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["quickstart", "list"]) == 1
    assert capsys.readouterr().err == "The current directory does not exist any more: change to another one.\n"
    assert main(["quickstart", "list", f"--directory={tmp_path}/network"]) == 1
    assert f"There is no network in {tmp_path}/network" in capsys.readouterr().err


@pytest.mark.parametrize("error", [StorageError("of a node: \x1b]0;title\x07\nnext"), ValueError("\x1b]0;title\x07")])
def test_terminal_escapes_in_an_error_are_visible(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, error)
    _, _, err = run(capsys)
    assert r"\x1b]0;title\x07" in err
    assert err.replace("\n", "").isprintable()


def test_an_unexpected_error_is_no_traceback_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, ValueError("what"))
    code, _, err = run(capsys)
    assert code == 70
    assert err.startswith("Internal error: ValueError: what\n")
    assert "Traceback" not in err


@pytest.mark.parametrize("argv", [["--logging=DEBUG"], ["--logging", "trace"], ["-l", "all"], ["-lDEBUG"]])
def test_debug_logging_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    failing(monkeypatch, StorageError("the disk is full"))
    code, _, err = run(capsys, *argv)
    assert code == 1
    assert err.startswith("Traceback")


def test_debug_logging_may_come_from_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, StorageError("the disk is full"))
    monkeypatch.setenv("BESU_LOGGING", "debug")
    assert run(capsys)[2].startswith("Traceback")
    assert run(capsys, "--logging=INFO")[2] == "the disk is full\n"


def test_an_interrupt_has_its_own_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert run(capsys) == (130, "", "Interrupted.\n")


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["--rpc-http-enabled", "--rpc-http-host="], "'--rpc-http-host': it is empty"),
        (["--page-http-enabled", "--page-http-host= "], "'--page-http-host': it is empty"),
        (["--rpc-http-enabled", "--rpc-http-host=\udcff"], "'--rpc-http-host': it is not UTF-8"),
        (["--metrics-push-enabled", "--metrics-push-prometheus-job=\udcff"], "job': it is not UTF-8"),
        (["--rpc-gas-cap=18446744073709551616"], "'--rpc-gas-cap': 18446744073709551616 is not between 0 and"),
        (["doctor", "--rpc=http://a:99999"], "'--rpc': expected http://HOST:PORT but was 'http://a:99999'"),
        (["doctor", "--rpc=http://a:b"], "'--rpc': expected http://HOST:PORT"),
        (["bench", "--rpc=http://[a"], "'--rpc': expected http://HOST:PORT"),
        (["permissions", "list", "--rpc=http://127.0.0.1:99999"], "'--rpc': expected http://HOST:PORT"),
        (["password", "hash", "--password=\udcff"], "'--password': it is not UTF-8"),
        (["blocks", "import", "--from=."], "Could not find file to import: . (it is a directory, a pipe or a device)"),
        (["--logging-config-file=absent"], "logging configuration absent: No such file or directory"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_error(
    capsys: pytest.CaptureFixture[str], argv: list[str], what: str
) -> None:
    code, _, err = run(capsys, *argv)
    assert code == 1
    assert what in err


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["password", "hash"], "There is no password: standard input is closed."),
        (["rlp", "encode"], "(standard input is closed)"),
    ],
)
def test_closed_standard_input_is_one_clear_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, argv: list[str], what: str
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    code, _, err = run(capsys, *argv)
    assert code == 1
    assert what in err


def test_help_needs_no_wide_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "3")
    code, out, _ = run(capsys, "permissions", "list", "--help")
    assert code == 0
    assert "(default: 0x0000000000000000000000000000000000008888)" in " ".join(out.split())
    assert "b'" not in out


def test_a_command_starts_without_event_loop_and_methods_of_a_node() -> None:
    """Half of the start of a short command would be spent on these imports."""
    start = "import sys; from ophion.cli.main import main; main(['export', 'parquet', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True, timeout=60)
    imported = set(done.stdout.splitlines()[-1].split())
    assert "ophion.data.export" in imported
    assert not {"asyncio", "_ssl", "ophion.chain.queries", "ophion.rpc.schema.method_table"} & imported
