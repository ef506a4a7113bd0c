"""pytest plugin: fixtures for contract tests.

    chain            a chain; the changes of a test are undone after the test
    chain_session    the same chain, where fixtures of a wider scope deploy contracts that stay
    accounts         accounts with funds
    deploy           `deploy("Token", *args)`: deploy an artifact by name, or by path
    contracts        artifacts of the project: `contracts.Token`
    w3               the chain as a `Web3` of web3.py
    network          `network(validators=4, seed=1)`: simulated validators with virtual time

Each worker of pytest-xdist has its own chain. A failed test shows the call tree of its last transaction.

Imports nothing of Ophion until a test uses a fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from web3 import Web3

    from ophion.abi.artifact import ArtifactFolder
    from ophion.sdk.account import Account
    from ophion.sdk.chain import Chain
    from ophion.sdk.contract import Contract
    from ophion.sdk.coverage import Coverage
    from ophion.sdk.gas_report import GasReport
    from ophion.testing.validator_network import ValidatorNetwork

_REPORT = pytest.StashKey["GasReport"]()
_COVERAGE = pytest.StashKey["Coverage"]()
_GAS_KEY = "ophion_gas"
_COVERAGE_KEY = "ophion_coverage"
_DEFAULT_GAS_FILE = ".ophion-gas.json"
_MAX_TREE_LINES = 200


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ophion", "contract tests on an Ophion chain")
    group.addoption("--ophion-gas", action="store_true", help="Show gas by contract and function.")
    group.addoption(
        "--ophion-gas-file",
        default=None,
        metavar="FILE",
        help=f"With --ophion-gas: file to compare with, written where it is missing. (default: {_DEFAULT_GAS_FILE})",
    )
    group.addoption(
        "--ophion-gas-check",
        action="store_true",
        help="With --ophion-gas: fail where the gas differs from the file, and keep the file.",
    )
    group.addoption(
        "--ophion-coverage", action="store_true", help="Show executed lines and branches of contract source."
    )
    group.addoption(
        "--ophion-coverage-file", default=None, metavar="FILE", help="With --ophion-coverage: file to write, for lcov."
    )
    parser.addini("ophion_artifacts", "Folders with compiled contracts, relative to the root.", type="linelist")
    parser.addini("ophion_chain", "Arguments of Chain, as lines name=value.", type="linelist")


# --- fixtures -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def chain_session(pytestconfig: pytest.Config) -> Iterator[Chain]:
    """The chain of this session and worker. Contracts deployed here stay for all tests."""
    from ophion.sdk.chain import Chain

    with Chain(**_arguments(pytestconfig.getini("ophion_chain"))) as made:
        if pytestconfig.getoption("--ophion-gas"):
            made.gas_report = _report_of(pytestconfig)
        if pytestconfig.getoption("--ophion-coverage"):
            made.coverage = _coverage_of(pytestconfig)
        yield made


@pytest.fixture
def chain(chain_session: Chain) -> Iterator[Chain]:
    """The chain of this session and worker. The changes of a test are undone after the test."""
    chain_session.last_receipt = None
    saved = chain_session.save()
    contracts = chain_session.known_contracts()
    yield chain_session
    chain_session.restore(saved)
    chain_session.forget_contracts(contracts)


@pytest.fixture
def accounts(chain: Chain) -> list[Account]:
    """Accounts with funds."""
    return chain.accounts


@pytest.fixture(scope="session")
def contracts(pytestconfig: pytest.Config) -> ArtifactFolder:
    """Compiled contracts of the project, by name."""
    return _artifacts(pytestconfig)


@pytest.fixture
def deploy(chain: Chain, contracts: ArtifactFolder) -> Callable[..., Contract]:
    """Deploy a contract: `deploy("Token", *args)`. The first argument is a name, a path or an artifact."""

    def deployed(artifact: Any, *args: Any, **options: Any) -> Contract:
        if isinstance(artifact, str) and (artifact in contracts or not Path(artifact).exists()):
            artifact = contracts[artifact]
        return chain.deploy(artifact, *args, **options)

    return deployed


@pytest.fixture
def w3(chain: Chain) -> Web3:
    """The chain as a `Web3` of web3.py."""
    return chain.web3


@pytest.fixture
def network() -> Iterator[Callable[..., ValidatorNetwork]]:
    """Start a simulated network: `network(validators=4, seed=1)`. The end of the test checks the consensus rules."""
    from ophion.testing.validator_network import ValidatorNetwork

    started: list[ValidatorNetwork] = []

    def start(validators: int = 4, seed: int = 0, **options: Any) -> ValidatorNetwork:
        started.append(ValidatorNetwork(validators, seed, **options))
        return started[-1]

    yield start
    for one in started:
        one.check()


def _artifacts(config: pytest.Config) -> ArtifactFolder:
    from ophion.abi.artifact import ArtifactFolder

    folders = config.getini("ophion_artifacts")
    if folders:
        return ArtifactFolder([config.rootpath / one for one in folders])
    return ArtifactFolder.of_project(config.rootpath)


def _arguments(lines: list[str]) -> dict[str, Any]:
    """Read `name=value` lines. A value that looks like a number becomes a number; any other value is text."""
    found: dict[str, Any] = {}
    for line in lines:
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            raise pytest.UsageError(f"ophion_chain: name=value is expected, not '{line}'")
        found[name] = int(value, 0) if value.lstrip("-").isdecimal() or value.startswith("0x") else value
    return found


# --- reports ------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Add the call tree of the last transaction to the report of a failed test."""
    report: pytest.TestReport = yield
    chain = getattr(item, "funcargs", {}).get("chain")
    if report.when == "call" and report.failed and chain is not None:
        text = _last_call_tree(chain)
        if text:
            report.sections.append(("Ophion: last transaction", text))
    return report


def _last_call_tree(chain: Any) -> str:
    from ophion.errors import OphionError
    from ophion.runtime.terminal_text import escape_text

    receipt = getattr(chain, "last_receipt", None)
    if receipt is None:
        return ""
    try:
        tree = receipt.trace()
        lines = str(tree).splitlines()
        console = tree.console
    except OphionError as error:
        return escape_text(f"{receipt.hash}: no call tree: {error}")
    if len(lines) > _MAX_TREE_LINES:
        lines = [*lines[:_MAX_TREE_LINES], f"... {len(lines) - _MAX_TREE_LINES} more lines"]
    if console:
        lines += ["", "console:", *map(escape_text, console)]
    return "\n".join(lines)


def _report_of(config: pytest.Config) -> GasReport:
    if _REPORT not in config.stash:
        from ophion.sdk.gas_report import GasReport

        config.stash[_REPORT] = GasReport()
    return config.stash[_REPORT]


def _coverage_of(config: pytest.Config) -> Coverage:
    if _COVERAGE not in config.stash:
        from ophion.sdk.coverage import Coverage

        artifacts = _artifacts(config)
        found = [(artifacts[name], artifacts._paths[name]) for name in artifacts]
        config.stash[_COVERAGE] = Coverage(found, config.rootpath)
    return config.stash[_COVERAGE]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Send the gas report of a worker to the controller. Without workers, fail the session if gas has changed."""
    config = session.config
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is not None and config.getoption("--ophion-coverage"):
        output[_COVERAGE_KEY] = _coverage_of(config).as_json()
    if not config.getoption("--ophion-gas"):
        return
    if output is not None:
        output[_GAS_KEY] = _report_of(config).as_json()
    elif config.getoption("--ophion-gas-check") and _report_of(config).differences(_gas_file(config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add gas and coverage of a pytest-xdist worker to the results of the controller."""
    output: Mapping[str, Any] = getattr(node, "workeroutput", None) or {}
    if output.get(_COVERAGE_KEY):
        _coverage_of(node.config).merge(output[_COVERAGE_KEY])
    uses = output.get(_GAS_KEY)
    if uses:
        from ophion.sdk.gas_report import GasUse

        for name, use in uses.items():
            _report_of(node.config).merge(name, GasUse(use["calls"], use["min"], use["max"], use["total"]))


def _gas_file(config: pytest.Config) -> Path:
    path: Path = config.rootpath / (config.getoption("--ophion-gas-file") or _DEFAULT_GAS_FILE)
    return path


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Show coverage, and the gas report with its differences from the file of an earlier run. Writes the coverage file
    and a missing gas file. Replaces a different gas file, except with `--ophion-gas-check`.
    """
    if config.getoption("--ophion-coverage") and not hasattr(config, "workeroutput"):
        coverage = _coverage_of(config)
        terminalreporter.section("coverage of contracts")
        terminalreporter.line(coverage.text())
        file = config.getoption("--ophion-coverage-file")
        if file:
            coverage.write_lcov(config.rootpath / file)
    if not config.getoption("--ophion-gas") or hasattr(config, "workeroutput"):
        return
    report, path = _report_of(config), _gas_file(config)
    terminalreporter.section("gas")
    terminalreporter.line(report.text())
    changes = report.differences(path)
    if changes:
        terminalreporter.line(f"\nchanges since {path.name}:")
        for line in changes:
            terminalreporter.line(f"  {line}")
    if not path.exists() or (changes and not config.getoption("--ophion-gas-check")):
        report.write(path)
