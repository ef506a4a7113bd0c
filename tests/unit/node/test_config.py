"""Options of a node: options of Pantheon 1.2 are accepted, contradictions are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ophion.errors import ConfigError
from ophion.node.config import NodeConfig
from ophion.runtime.logs import LogLevel
from ophion.runtime.options import load, problems_of, read_environment, read_file, specs_of, warnings_of
from tests.unit.node.command_line import loaded

ADDRESS = "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"
NODE_ID = "ab" * 64


def problems(*tokens: str) -> list[str]:
    return problems_of(loaded(*tokens).config)


@pytest.mark.parametrize(
    "token",
    [
        "--data-path=data",
        "--genesis-file=genesis.json",
        "--network=dev",
        "--network-id=1337",
        "--node-private-key-file=key",
        "--p2p-enabled=false",
        "--discovery-enabled=false",
        "--p2p-host=127.0.0.1",
        "--p2p-interface=0.0.0.0",
        "--p2p-port=30303",
        "--nat-method=UPNP",
        "--bootnodes",
        "--bootnodes=",
        "--max-peers=25",
        "--remote-connections-limit-enabled=true",
        "--remote-connections-max-percentage=60",
        f"--banned-node-ids={NODE_ID},0x{NODE_ID}",
        f"--banned-node-id={NODE_ID}",
        "--sync-mode=fast",
        "--fast-sync-min-peers=5",
        "--rpc-http-enabled",
        "--rpc-http-host=0.0.0.0",
        "--rpc-http-port=0",
        "--rpc-http-api=eth,NET,web3,Admin,CLIQUE,DEBUG,EEA,IBFT,MINER,PERM,PRIV,TXPOOL,TRACE,QBFT",
        "--rpc-http-apis=ETH",
        "--rpc-http-cors-origins=all",
        "--rpc-http-authentication-credentials-file=users.toml",
        "--rpc-ws-enabled=true",
        "--rpc-ws-host=127.0.0.1",
        "--rpc-ws-port=8546",
        "--rpc-ws-api=ETH",
        "--rpc-ws-apis=ETH,NET",
        "--rpc-ws-authentication-credentials-file=users.toml",
        "--graphql-http-host=127.0.0.1",
        "--graphql-http-port=8547",
        "--graphql-http-cors-origins=none",
        "--host-whitelist=*",
        "--host-allowlist=localhost,node.example",
        "--metrics-host=127.0.0.1",
        "--metrics-port=9545",
        "--metrics-category=BLOCKCHAIN,ETHEREUM,KVSTORE_ROCKSDB",
        "--metrics-push-host=127.0.0.1",
        "--metrics-push-port=9001",
        "--metrics-push-interval=15",
        "--metrics-push-prometheus-job=job",
        f"--miner-coinbase={ADDRESS[2:]}",
        "--min-gas-price=0",
        "--miner-extra-data=0x" + "ff" * 32,
        "--permissions-nodes-config-file=p.toml",
        "--permissions-accounts-config-file=p.toml",
        f"--permissions-nodes-contract-address={ADDRESS}",
        f"--permissions-accounts-contract-address={ADDRESS}",
        "--privacy-url=http://localhost:8888",
        "--privacy-public-key-file=key",
        "--privacy-enclave-key-file=a.key,b.key",
        "--privacy-enclave-key-password-file=passwords",
        "--privacy-enclave-http-host=127.0.0.1",
        "--privacy-enclave-http-port=8888",
        "--privacy-enclave-peers=devp2p,http://localhost:8889/",
        "--privacy-enclave-host=127.0.0.1",
        "--privacy-enclave-port=8889",
        "--privacy-delivery=queue",
        "--privacy-always-send-to=A1aVtMxLCUHmBVHXoZzzBgPbW/wj5axDpW9X8l91SGo=",
        "--privacy-tls-enabled",
        "--privacy-tls-keystore-file=store",
        "--privacy-tls-keystore-password-file=password",
        "--privacy-tls-known-enclave-file=known",
        "--privacy-precompiled-address=126",
        "--privacy-marker-transaction-signing-key-file=key",
        "--privacy-multi-tenancy-enabled",
        "--privacy-nonce-always-increments",
        "--privacy-enable-database-migration",
        "--privacy-flexible-groups-enabled",
        "--privacy-onchain-groups-enabled",
        "--revert-reason-enabled",
        "--tx-pool-max-size=4096",
        "--tx-pool-retention-hours=13",
        "--tx-pool-price-bump=10",
        "--logging=trace",
        "--state-history=128",
        "--pruning-enabled",
        "--pruning-blocks-retained=1024",
        "--block-period=0.5",
        "--target-gas-limit=30000000",
    ],
)
def test_every_option_is_accepted(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("genesis.json").touch()
    assert problems(token) == []


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        (
            ["--miner-enabled"],
            "Unable to mine without a valid coinbase. Either disable mining (remove --miner-enabled)or specify the"
            " beneficiary of mining (via --miner-coinbase <Address>)",
        ),
        (
            ["--network=dev", "--genesis-file=g.json"],
            "--network option and --genesis-file option can't be used at the same time.  Please refer to CLI reference"
            " for more details about this constraint.",
        ),
        (
            ["--metrics-enabled", "--metrics-push-enabled"],
            "--metrics-enabled option and --metrics-push-enabled option can't be used at the same time.  Please refer"
            " to CLI reference for more details about this constraint.",
        ),
        (
            ["--rpc-http-enabled", "--rpc-http-authentication-enabled"],
            "Unable to authenticate JSON-RPC HTTP endpoint without a supplied credentials file",
        ),
        (
            ["--rpc-ws-enabled", "--rpc-ws-authentication-enabled"],
            "Unable to authenticate JSON-RPC WebSocket endpoint without a supplied credentials file",
        ),
        (
            ["--privacy-enabled", "--min-gas-price=1"],
            "--privacy-enabled: markers signed by random keys cannot pay for gas. Give --min-gas-price=0, or a key with"
            " --privacy-marker-transaction-signing-key-file.",
        ),
        (
            ["--privacy-enabled", "--min-gas-price=0", "--privacy-multi-tenancy-enabled"],
            "--privacy-multi-tenancy-enabled needs --rpc-http-authentication-enabled or"
            " --rpc-ws-authentication-enabled: the token names the keys that may be used.",
        ),
        (
            ["--privacy-enabled", "--min-gas-price=0", "--privacy-url=http://localhost:8888"],
            "Please specify Enclave public key file path to enable privacy",
        ),
        (
            ["--privacy-url=http://localhost:8888", "--privacy-enclave-http-port=0"],
            "--privacy-enclave-http-port serves the embedded enclave; --privacy-url selects a remote one.",
        ),
        (
            ["--privacy-url=https://localhost:8888"],
            "--privacy-tls-enabled and an https address in --privacy-url need each other: set both or neither.",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(tokens: list[str], problem: str) -> None:
    assert problems(*tokens) == [problem]


@pytest.mark.parametrize("is_flexible", [False, True])
def test_tenants_of_a_remote_enclave_need_no_key_file_except_for_flexible_groups(
    is_flexible: bool, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 40)
    found = problems(
        *("--privacy-enabled", "--min-gas-price=0", "--privacy-url=http://localhost:8888"),
        *("--privacy-multi-tenancy-enabled", *(["--privacy-flexible-groups-enabled"] if is_flexible else [])),
        *("--rpc-http-enabled", "--rpc-http-authentication-enabled", "--rpc-http-authentication-jwt-algorithm=HS256"),
        f"--rpc-http-authentication-jwt-public-key-file={secret}",
    )
    problem = (
        "--privacy-flexible-groups-enabled needs to know the key of this node in the enclave: give it with"
        " --privacy-public-key-file."
    )
    assert found == ([problem] if is_flexible else [])


@pytest.mark.parametrize("pruning", ["--state-history=128", "--pruning-enabled"])
def test_private_states_cannot_be_dropped(pruning: str) -> None:
    found = problems("--privacy-enabled", "--privacy-public-key-file=k", pruning)
    assert found[0] == "--privacy-enabled needs every state: private states cannot be combined with --state-history."


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [
        ([], None),
        (["--state-history=128"], 128),
        (["--pruning-enabled"], 1024),
        (["--pruning-enabled", "--pruning-blocks-retained=5"], 16),
        (["--pruning-blocks-retained=100"], None),
        (["--pruning-enabled", "--state-history=20"], 20),
    ],
)
def test_states_are_kept_by_either_name(tokens: list[str], kept: int | None) -> None:
    assert loaded(*tokens).config.storage.states_kept == kept


def test_all_problems_are_reported_together() -> None:
    assert len(problems("--miner-enabled", "--privacy-url=https://x", "--permissions-nodes-contract-enabled")) == 3


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("--rpc-http-cors-origins=*,http://a", "Values '*' or 'all' can't be used with other domains"),
        ("--rpc-http-cors-origins=none,http://a", "Value 'none' can't be used with other domains"),
        ("--host-whitelist=all,a", "Values '*' or 'all' can't be used with other hostnames"),
        ("--rpc-http-api=ETH,BOGUS", "BOGUS"),
        ("--rpc-http-port=70000", "70000 is not between 0 and 65535"),
        ("--miner-coinbase=0x12", "is not an address"),
        ("--miner-extra-data=0x" + "00" * 33, "at most 32 bytes"),
        ("--banned-node-ids=abcd", "is not a node id"),
        ("--tx-pool-max-size=0", "0 is less than 1"),
    ],
)
def test_a_value_that_cannot_be_is_named(token: str, reason: str) -> None:
    with pytest.raises(Exception, match=reason.replace("*", r"\*")):
        loaded(token)


def test_an_option_whose_main_switch_is_off_earns_a_warning() -> None:
    assert warnings_of(loaded("--rpc-http-port=9", "--rpc-http-host=a")) == [
        "--rpc-http-host and --rpc-http-port will have no effect unless --rpc-http-enabled is defined on the command"
        " line."
    ]
    assert warnings_of(loaded("--rpc-http-port=9", "--rpc-http-enabled")) == []


def test_the_variables_of_an_image_of_besu_earn_no_warning() -> None:
    """Besu's image sets the hosts of all services."""
    specs = specs_of(NodeConfig)
    for prefix, count in (("BESU_", 0), ("PANTHEON_", 0), ("OPHION_", 1)):
        environ = {prefix + "RPC_WS_HOST": "0.0.0.0"}
        assert len(warnings_of(load(NodeConfig, read_environment(environ, specs)))) == count, prefix


def test_authentication_of_nothing_earns_a_warning() -> None:
    asked = ("--rpc-http-authentication-enabled", "--rpc-http-authentication-credentials-file=users.toml")
    assert warnings_of(loaded(*asked)) == [
        "--rpc-http-authentication-enabled will have no effect unless --rpc-http-enabled is defined on the command"
        " line."
    ]
    for served in ("--rpc-http-enabled", "--graphql-http-enabled"):
        assert warnings_of(loaded(*asked, served)) == [], "GraphQL asks for the same tokens"


def test_the_permissioning_group_without_permissioning_earns_a_warning() -> None:
    assert warnings_of(loaded("--rpc-http-enabled", "--rpc-http-api=PERM")) == [
        "Permissions are disabled. Cannot enable PERM APIs when not using Permissions."
    ]


def test_a_file_sets_the_same_options(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        'rpc-http-enabled=true\nrpc-http-api=["ETH","NET","WEB3","IBFT"]\nrpc-http-cors-origins=["all"]\n'
        'host-whitelist=["*"]\nmin-gas-price=0\nlogging="DEBUG"\nbootnodes=[]\n'
    )
    config = load(NodeConfig, read_file(file, specs_of(NodeConfig))).config
    assert config.http.enabled
    assert [group.name for group in config.http.groups] == ["ETH", "NET", "WEB3", "IBFT"]
    assert config.access.host_allow_list == ("*",)
    assert config.miner.min_gas_price == 0
    assert config.logs.level is LogLevel.DEBUG


def test_defaults_are_those_of_pantheon() -> None:
    config = NodeConfig()
    assert not config.http.enabled
    assert (config.http.port, config.websocket.port, config.graphql.port) == (8545, 8546, 8547)
    assert config.miner.min_gas_price == 1000
    assert (config.pool.max_size, config.pool.retention_hours) == (4096, 13)
    assert config.data.data_path == Path("ophion-data")
    assert config.storage.durable


@pytest.mark.parametrize(
    "flag",
    [spec.flag for spec in specs_of(NodeConfig) if re.search(r"-(tls|ssl)-enabled", spec.flag)] + ["--privacy-enabled"],
)
def test_an_option_that_needs_tls_enables_it(flag: str) -> None:
    also = ("--privacy-enabled",) if flag.startswith("--privacy-tls") else ()
    assert loaded(flag, *also).config.speaks_tls


def test_tls_is_off_by_default() -> None:
    assert not loaded().config.speaks_tls
    assert not loaded("--metrics-enabled", "--rpc-http-enabled", "--rpc-ws-enabled").config.speaks_tls


def test_unlocked_accounts_off_loopback_cause_a_warning() -> None:
    unlocked = ("--network=dev", "--dev-unlocked-accounts", "--rpc-http-enabled")
    expected = "--rpc-http-host=0.0.0.0 with --dev-unlocked-accounts: every machine"
    found = warnings_of(loaded(*unlocked, "--rpc-http-host=0.0.0.0"))
    assert any(warning.startswith(expected) for warning in found)
    for harmless in (
        (*unlocked,),
        (*unlocked, "--rpc-ws-host=0.0.0.0"),
        ("--network=dev", "--rpc-http-enabled", "--rpc-http-host=0.0.0.0"),
        (*unlocked, "--rpc-http-host=0.0.0.0", "--rpc-http-authentication-enabled"),
    ):
        assert not any("every machine" in warning for warning in warnings_of(loaded(*harmless)))


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (
            ("--dev-fork-block-number=5",),
            "Option '--dev-fork-block-number' (--fork-block-number) names a block of another chain: it needs"
            " '--dev-fork-url' (--fork-url)",
        ),
        (
            ("--dev-fork-url=nonsense",),
            "Invalid value for option '--dev-fork-url' (--fork-url): 'nonsense' does not begin with http:// or"
            " https://, the name of a host and, if given, a port from 1 to 65535",
        ),
        (
            ("--dev-fork-url=http://127.0.0.1:99999",),
            "Invalid value for option '--dev-fork-url' (--fork-url): 'http://127.0.0.1:99999' does not begin with"
            " http:// or https://, the name of a host and, if given, a port from 1 to 65535",
        ),
        (
            ("--dev-fork-url=http://127.0.0.1:1", "--dev-fork-header=a: b\nc: d"),
            "Invalid value for option '--dev-fork-header' (--fork-header): 'a: b\\nc: d' is not of the form"
            " 'Name: value' in one line of ASCII text",
        ),
        (
            ("--dev-fork-url=http://127.0.0.1:1", "--dev-fork-cache-path=/dev/null/cache"),
            "Invalid value for option '--dev-fork-cache-path' (--fork-cache-path): /dev/null/cache is not a folder",
        ),
        (("--dev-mnemonic=",), "The mnemonic has 0 words; 12, 15, 18, 21 or 24 are expected."),
        (
            ("--dev-fork-url=http://127.0.0.1:1", "--dev-fork-header=abc"),
            "Invalid value for option '--dev-fork-header' (--fork-header): 'abc' is not of the form 'Name: value' in"
            " one line of ASCII text",
        ),
        (
            ("--dev-dump-state=/missing/state.json",),
            "Invalid value for option '--dev-dump-state' (--dump-state, --state): there is no folder /missing",
        ),
        (
            ("--dev-config-out=/missing/keys.json",),
            "Invalid value for option '--dev-config-out' (--config-out): there is no folder /missing",
        ),
    ],
)
def test_options_of_a_development_node_that_cannot_work(tokens: tuple[str, ...], expected: str) -> None:
    assert problems(*tokens) == [expected]


def test_numbers_of_a_development_node_have_limits() -> None:
    for option, limit in (("--dev-timestamp", 2**40), ("--dev-base-fee", 2**64)):
        with pytest.raises(ConfigError, match=f"'{option}': {limit} is not between 0 and {limit - 1}"):
            problems(f"{option}={limit}")


def test_options_of_a_development_node_that_work(tmp_path: Path) -> None:
    fork = ("--dev-fork-url=https://127.0.0.1:1/path@7", "--dev-fork-header=Authorization: Bearer abc")
    assert problems(*fork, f"--dev-dump-state={tmp_path / 'state.json'}", "--dev-config-out=keys.json") == []


def test_a_validator_has_one_key(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("1" * 64)
    found = problems("--security-module=pkcs11", f"--validator-private-key-file={key}", "--genesis-file=g")
    assert any("both name a validator key" in problem for problem in found)
    found = problems("--validator-private-key-password-file=password", "--genesis-file=g")
    assert "--validator-private-key-password-file needs --validator-private-key-file." in found


def test_a_key_of_the_vote_store_needs_its_certificate() -> None:
    found = problems("--vote-store=etcds://a:1/p", "--vote-store-key-file=key", "--genesis-file=g")
    assert "--vote-store-key-file needs --vote-store-certificate-file." in found
