"""Reads a small configuration from every source."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import field

from ophion.errors import ConfigError
from ophion.runtime.options import (
    LoadedConfig,
    Options,
    OptionTexts,
    between,
    hex_bytes,
    load,
    misspelt_variables,
    option,
    part_of,
    port,
    problems_of,
    read_environment,
    read_file,
    read_flag,
    specs_of,
    warnings_of,
)
from ophion.runtime.options.render import help_sections, markdown


class Mode(enum.Enum):
    FULL = "full"
    FAST = "fast"


class Level(enum.Enum):
    A = 1
    B = 2
    C = 3
    D = 4
    E = 5


def even(text: str) -> int:
    value = int(text)
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value


class Mining(Options):
    """Mining: whether and how the node produces blocks."""

    enabled: bool = option("--miner-enabled", default=False, help="Produce blocks.")
    coinbase: str | None = option("--miner-coinbase", default=None, help="Who earns.", needs="--miner-enabled")
    extra: str = option("--miner-extra-data", default="0x", help="Vanity.", needs="--miner-enabled")

    def problems(self) -> Iterable[str]:
        if self.enabled and self.coinbase is None:
            yield "Unable to mine without a valid coinbase."


class Everything(Options):
    """General."""

    port: int = option("--p2p-port", default=30303, help="Port.", check=port)
    percent: int = option("--share", default=60, help="Share.", check=between(0, 100))
    mode: Mode = option("--sync-mode", default=Mode.FULL, help="How to follow.")
    peers: int = option("--fast-sync-min-peers", default=5, help="Peers.", needs=("--sync-mode", Mode.FAST))
    apis: tuple[str, ...] = option("--rpc-http-api", "--rpc-http-apis", default=("ETH",), help="Groups.")
    bootnodes: tuple[str, ...] = option("--bootnodes", default=(), help="First peers.", bare=True)
    data: Path | None = option("--data-path", default=None, help="Place.")
    level: str = option("--logging", "-l", default="INFO", help="Level.")
    ratio: float = option("--ratio", default=0.5, help="Ratio.", hidden=True)
    pair: int | None = option("--pair", default=None, help="An even number.", parse=even)
    mining: Mining = field(default_factory=Mining)


class Wide(Options):
    """Many names."""

    level: Level = option("--level", default=Level.A, help="How much.")


SPECS = specs_of(Everything)
FLAGS = {flag: spec for spec in SPECS for flag in spec.declaration.flags}


def parse(
    argv: Sequence[str] = (), environ: Mapping[str, str] | None = None, file: Path | None = None
) -> LoadedConfig[Everything]:
    found: list[OptionTexts] = []
    problems: list[str] = []
    rest = deque(argv)
    while rest:
        try:
            found.append(read_flag(rest.popleft(), rest, FLAGS, ("blocks",)))
        except ConfigError as error:
            problems.extend(error.problems)
    found += read_environment(environ or {}, SPECS)
    if file is not None:
        found += read_file(file, SPECS)
    return load(Everything, found, problems)


def refused(*argv: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(argv)
    return caught.value.problems


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_defaults_stand_when_nothing_is_given() -> None:
    assert parse().config == Everything()


@pytest.mark.parametrize(
    "argv",
    [
        ["--p2p-port=30304", "--miner-enabled", "--sync-mode=fast"],
        ["--p2p-port", "30304", "--miner-enabled=true", "--sync-mode", "Fast"],
        ["--p2p-port", "0x7660", "--miner-enabled", "TRUE", "--sync-mode=FAST"],
    ],
)
def test_flags_take_their_value_attached_or_apart(argv: list[str]) -> None:
    config = parse(argv).config
    assert (config.port, config.mining.enabled, config.mode) == (30304, True, Mode.FAST)


def test_a_boolean_may_be_switched_off() -> None:
    assert parse(["--miner-enabled=false"]).config.mining.enabled is False


def test_lists_are_split_at_commas_and_repeated_flags_add_up() -> None:
    assert parse(["--rpc-http-api=ETH, NET", "--rpc-http-apis", "WEB3"]).config.apis == ("ETH", "NET", "WEB3")


def test_a_list_that_may_be_empty_can_stand_alone() -> None:
    config = parse(["--bootnodes", "--p2p-port=1"]).config
    assert (config.bootnodes, config.port) == ((), 1)


def test_short_flags_take_values_in_three_forms() -> None:
    assert [parse([*argv]).config.level for argv in (["-l", "DEBUG"], ["-l=DEBUG"], ["-lDEBUG"])] == ["DEBUG"] * 3


def test_a_negative_number_is_a_value_and_not_a_flag() -> None:
    assert refused("--share", "-1") == ("Invalid value for option '--share': -1 is not between 0 and 100",)


def test_all_problems_are_reported_together() -> None:
    assert refused("--p2p-port=x", "--prot=1", "--sync-mode=slow", "--miner-enabled=maybe", "--data-path") == (
        "Unknown option: '--prot'",
        "Missing required parameter for option '--data-path' (FILE)",
        "Invalid value for option '--p2p-port': 'x' is not a whole number",
        "Invalid value for option '--sync-mode': expected one of [FULL, FAST] (case-insensitive) but was 'slow'",
        "Invalid value for option '--miner-enabled': 'maybe' is not a boolean: expected true or false",
    )


def test_a_misspelt_flag_brings_a_suggestion_and_its_value_no_second_complaint() -> None:
    assert refused("--rpc-http-apo", "ETH") == (
        "Unknown option: '--rpc-http-apo' (did you mean --rpc-http-api or --rpc-http-apis?)",
    )


def test_a_hidden_option_works_but_is_neither_shown_nor_suggested() -> None:
    assert parse(["--ratio=0.25"]).config.ratio == 0.25
    assert refused("--ratios=1") == ("Unknown option: '--ratios'",)
    assert "--ratio" not in help_sections(SPECS)


def test_a_single_value_cannot_be_given_twice() -> None:
    assert refused("--p2p-port=1", "--p2p-port=2") == ("Option '--p2p-port' should be specified only once",)


def test_a_parser_of_its_own_names_its_reason() -> None:
    assert parse(["--pair=4"]).config.pair == 4
    assert refused("--pair=3") == ("Invalid value for option '--pair': 3 is odd",)


def test_the_flag_wins_over_the_environment_and_the_environment_over_the_file(tmp_path: Path) -> None:
    file = toml(tmp_path, 'p2p-port = 3\nshare = "3"\nsync-mode = "FAST"\nrpc-http-apis = ["A", "B"]')
    environ = {"OPHION_P2P_PORT": "2", "PANTHEON_SHARE": "2"}
    config = parse(["--p2p-port=1"], environ, file).config
    assert (config.port, config.percent, config.mode, config.apis) == (1, 2, Mode.FAST, ("A", "B"))


def test_environment_knows_aliases_and_older_prefixes_but_no_short_names() -> None:
    assert parse(environ={"BESU_RPC_HTTP_APIS": "A,B"}).config.apis == ("A", "B")
    assert parse(environ={"OPHION_L": "DEBUG"}).config.level == "INFO"
    assert parse(environ={"OPHION_P2P_PORT": ""}).config.port == 30303
    with pytest.raises(ConfigError, match="Invalid value for environment variable 'OPHION_P2P_PORT': 'x' is not"):
        parse(environ={"OPHION_P2P_PORT": "x"})


def test_a_variable_that_is_nearly_one_of_ours_is_pointed_out() -> None:
    environ = {"OPHION_RPC_HTTP_APISS": "A", "OPHION_P2PPORT": "1", "OPHION_P2P_PORT": "1", "OPHION_FAULTS": "long"}
    assert misspelt_variables(environ | {"BESU_OPTS": "x", "HOME": "/"}, SPECS) == [
        "Environment variable OPHION_P2PPORT has no effect (did you mean OPHION_P2P_PORT?)",
        "Environment variable OPHION_RPC_HTTP_APISS has no effect (did you mean OPHION_RPC_HTTP_APIS?)",
    ]
    assert misspelt_variables({"OPHION_RPC_HTTP_APIS": "A", "PATH": ""}, SPECS) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Unable to read TOML configuration file"),
        ("# only words\n", "Unable to read TOML configuration file"),
        ("a = \n", "Invalid TOML configuration: Invalid value (at line 1, column 5)"),
        ("x=1", "Unknown option in TOML configuration file: x"),
        ("x=1\ny=2\np2p-port=1", "Unknown options in TOML configuration file: x, y"),
        ("[table]\np2p-port=1", "Unknown option in TOML configuration file: table"),
        ("p2p-port=[1]", "Invalid value for 'p2p-port' in TOML configuration file: expected a single value, not a"),
        ("p2p-port=2024-01-01", "Invalid value for 'p2p-port' in TOML configuration file: expected text, a number"),
        ("p2p-port=1.5", "Invalid value for 'p2p-port' in TOML configuration file: '1.5' is not a whole number"),
        ("rpc-http-api=[[1]]", "Invalid value for 'rpc-http-api' in TOML configuration file: expected text"),
        ("rpc-http-api=['A']\nrpc-http-apis=['B']", "'rpc-http-api' in TOML configuration file is given again"),
        ("a=" + "[" * 100_000, "Invalid TOML configuration: "),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(file=toml(tmp_path, text))
    assert str(caught.value).startswith(message)


def test_a_missing_or_unreadable_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^Unable to read TOML configuration, file not found\.$"):
        parse(file=tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="Unable to read TOML configuration file .*: Is a directory"):
        parse(file=tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match=r"not UTF-8 text \(at byte 5\)"):
        parse(file=binary)
    with (tmp_path / "huge.toml").open("wb") as huge:
        huge.truncate(2**40)
    with pytest.raises(
        ConfigError, match="Unable to read TOML configuration file .*/huge.toml: more than 1048576 bytes"
    ):
        parse(file=tmp_path / "huge.toml")


def test_options_without_effect_are_named_with_their_main_switch() -> None:
    loaded = parse(["--miner-coinbase=0x1", "--miner-extra-data=0x2", "--fast-sync-min-peers=2"])
    assert warnings_of(loaded) == [
        "--fast-sync-min-peers will have no effect unless --sync-mode is defined on the command line.",
        "--miner-coinbase and --miner-extra-data will have no effect unless --miner-enabled is defined on the"
        " command line.",
    ]
    assert warnings_of(parse(["--miner-coinbase=0x1", "--miner-enabled", "--sync-mode=FAST"])) == []


def test_parts_say_what_does_not_go_together() -> None:
    assert problems_of(parse(["--miner-enabled"]).config) == ["Unable to mine without a valid coinbase."]
    assert problems_of(parse(["--miner-enabled", "--miner-coinbase=1"]).config) == []


def test_a_part_is_found_by_its_class() -> None:
    assert part_of(parse(["--miner-enabled"]).config, Mining).enabled
    with pytest.raises(LookupError):
        part_of(Mining(), Everything)


def test_loaded_knows_what_was_given() -> None:
    loaded = parse(["--rpc-http-apis=A"])
    assert loaded.is_given("--rpc-http-api")
    assert not loaded.is_given("--p2p-port")


def test_hex_digits_are_read_with_or_without_prefix_and_checked_for_size() -> None:
    read = hex_bytes(1, 2, "a short thing")
    assert (read("0xab"), read("ABcd")) == (b"\xab", b"\xab\xcd")
    for text in ("", "0x", "abcdef", "a", "xy", "a b ", "0x0xab"):
        with pytest.raises(ValueError, match=f"'{text}' is not a short thing"):
            read(text)


class Needy(Options):
    """Options without a default."""

    source: Path = option("--from", help="Where from.")


def test_a_missing_required_option_is_named() -> None:
    with pytest.raises(ConfigError, match="Missing required option: '--from=FILE'"):
        load(Needy, [])


def test_help_shows_sections_forms_and_defaults() -> None:
    text = help_sections(SPECS)
    assert "General:\n  --p2p-port=NUMBER\n      Port. (default: 30303)" in text
    assert "  --rpc-http-api, --rpc-http-apis=TEXT[,TEXT…]\n      Groups. (default: ETH)" in text
    assert "  --miner-enabled[=true|false]\n      Produce blocks. (default: false)" in text
    assert "  -l, --logging=TEXT" in text
    assert "--sync-mode=FULL|FAST" in text


def test_the_heading_of_a_section_ends_at_a_colon_of_the_docstring() -> None:
    assert "\n\nMining:\n  --miner-enabled" in help_sections(SPECS)


def test_many_names_are_listed_in_the_text() -> None:
    assert "--level=NAME\n      How much. One of: A, B, C, D, E. (default: A)" in help_sections(specs_of(Wide))


def test_the_documentation_page_names_flag_variable_and_default() -> None:
    assert "| `--p2p-port` | `OPHION_P2P_PORT` | `30303` | Port. |" in markdown(SPECS)


@given(st.lists(st.text(max_size=20), max_size=6))
def test_no_command_line_breaks_the_reader(argv: list[str]) -> None:
    try:
        parse([token if token.startswith("-") else f"--{token}" for token in argv])
    except ConfigError as error:
        assert error.problems
