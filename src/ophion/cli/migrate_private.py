"""`ophion migrate private`: moves payloads of Tessera or Orion, or compares private states with the old node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ophion.cli.command import Command, CommandSession
from ophion.cli.progress import Progress
from ophion.cli.untrusted_text import escape_untrusted
from ophion.cli.url_option import read_url
from ophion.enclave.encoding import base64_text
from ophion.enclave.key_loading import DEFAULT_KEY_FILE, open_keys
from ophion.enclave.options import EnclaveConfig
from ophion.errors import CommandError, ConfigError
from ophion.migration.private.comparison import PrivateComparison
from ophion.migration.private.enclave_databases import read_orion, read_tessera
from ophion.migration.private.payload_import import PayloadImport
from ophion.native.enclave import EnclaveKeyring
from ophion.native.exceptions import translated
from ophion.native.privacy import PrivateLedger
from ophion.node.datadir import DataConfig, DataDirectory
from ophion.runtime.blocking_json_rpc import JsonRpcClient
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.options import Options, option, problems_of


class PrivateOptions(Options):
    """Options: old enclave and compared nodes of `ophion migrate private`."""

    tessera: Path | None = option(
        "--from-tessera",
        default=None,
        metavar="PATH",
        help="SQLite database of Tessera, or directory with payloads.csv and groups.csv.",
    )
    orion: Path | None = option("--from-orion", default=None, metavar="DIRECTORY", help="LevelDB of a stopped Orion.")
    compare: bool = option(
        "--compare", default=False, help="Move nothing: compare private states of two running nodes, --old and --new."
    )
    old: str | None = option(
        "--old", default=None, metavar="URL", parse=read_url("http", "https"), help="JSON-RPC of the old node."
    )
    new: str | None = option(
        "--new", default=None, metavar="URL", parse=read_url("http", "https"), help="JSON-RPC of Ophion."
    )

    def problems(self) -> Iterator[str]:
        if self.compare:
            if self.old is None or self.new is None:
                yield "--compare needs --old=URL and --new=URL."
        elif (self.tessera is None) == (self.orion is None):
            yield "Give one source: --from-tessera=PATH or --from-orion=DIRECTORY."


def migrate_private(options: PrivateOptions, session: CommandSession) -> int:
    """Move payloads into the embedded enclave of a stopped node, or compare private states with the old node."""
    if problems := problems_of(options):
        raise ConfigError(problems)
    if options.compare:
        assert options.old is not None, "checked by `problems`"
        assert options.new is not None, "checked by `problems`"
        return _compare(options.old, options.new)
    return _import(options, session)


def _import(options: PrivateOptions, session: CommandSession) -> int:
    path, config = session.part(DataConfig).data_path, session.part(EnclaveConfig)
    if not config.key_files and not (path / DEFAULT_KEY_FILE).exists():
        raise ConfigError("Give the keys of the old enclave: --privacy-enclave-key-file=FILE.")
    old = read_tessera(options.tessera) if options.tessera is not None else read_orion(_given(options.orion))
    with DataDirectory.open_existing(path) as directory, translated():
        store = directory.store()
        keyring = EnclaveKeyring([pair.secret for pair in open_keys(config, path, SystemEntropy())])
        report = PayloadImport(store, keyring, old.groups).run(old.payloads)
        PrivateLedger(store).clear()
    for group, count in sorted(report.groups.items()):
        print(f"group {base64_text(group)}: {count:,} payloads, {len(report.members[group])} members")
    for reason, count in sorted(report.refused.items()):
        print(f"not moved: {count:,} payloads: {escape_untrusted(reason)}", file=sys.stderr)
    if old.unread_groups:
        print(f"not moved: {old.unread_groups:,} entries that are no groups or payloads", file=sys.stderr)
    print(
        f"Moved {sum(report.groups.values()):,} payloads of {len(report.groups):,} groups; {report.known:,} were there,"
        f" {sum(report.refused.values()):,} are not moved. The node computes private states when it starts."
    )
    return 1 if report.refused else 0


def _given(path: Path | None) -> Path:
    if path is None:
        raise CommandError("There is no source.")
    return path


def _compare(old: str, new: str) -> int:
    comparison = PrivateComparison(JsonRpcClient(old), JsonRpcClient(new))
    progress = Progress("Blocks", 0)
    is_equal = comparison.run(lambda number, _head: progress.update(number))
    progress.clear()
    for group_id, group in sorted(comparison.groups.items()):
        print(
            f"group {escape_untrusted(group_id)}: {group.receipts} transactions, {len(group.contracts)} contracts,"
            f" {len(group.accounts)} accounts; {group.equal}/{group.compared} answers equal"
        )
        for method, difference in group.differences:
            print(f"    {method} {escape_untrusted(difference.params)} {escape_untrusted(difference.place)}")
            print(f"        old: {escape_untrusted(difference.old)}")
            print(f"        new: {escape_untrusted(difference.new)}")
    print(f"{comparison.markers} markers, {comparison.foreign} of them of others; {len(comparison.groups)} groups")
    if not comparison.groups:
        raise CommandError("Nothing was compared: neither node has a private receipt for a marker on the chain.")
    return 0 if is_equal else 1


PRIVATE = Command(
    "private",
    "Move private payloads of Tessera or Orion into the embedded enclave, or compare private states.",
    migrate_private,
    PrivateOptions,
    uses=(DataConfig, EnclaveConfig),
    examples=(
        "ophion migrate private --from-tessera=tessera.db --data-path=data --privacy-enclave-key-file=tessera.key",
        "ophion migrate private --from-orion=orion/routerdb --data-path=data --privacy-enclave-key-file=orion.key",
        "ophion migrate private --compare --old=http://127.0.0.1:8545 --new=http://127.0.0.1:9545",
    ),
)
