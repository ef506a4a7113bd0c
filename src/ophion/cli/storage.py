"""`ophion storage`: what the database holds, and whether it is sound."""

from __future__ import annotations

from ophion.cli.command import Command, Nothing, Session
from ophion.native.failures import translated
from ophion.node.datadir import DataConfig, DataDirectory

_MOST_FINDINGS = 100


def usage(options: Nothing, session: Session) -> int:
    """A table of sizes."""
    path = session.part(DataConfig).data_path
    with DataDirectory.open_existing(path) as directory, translated():
        rows = directory.store(read_only=True).usage()
        on_disk = (directory.database / "data.mdb").stat().st_blocks * 512
    rows = sorted(rows, key=lambda row: -row[2])
    width = max([len("on disk"), *(len(name) for name, _, _ in rows)])
    print(f"{'table':<{width}}  {'entries':>12}  {'size':>10}")
    for name, entries, size in rows:
        print(f"{name:<{width}}  {entries:>12,}  {show_size(size):>10}")
    print(f"{'total':<{width}}  {sum(row[1] for row in rows):>12,}  {show_size(sum(row[2] for row in rows)):>10}")
    print(f"{'on disk':<{width}}  {'':>12}  {show_size(on_disk):>10}")
    return 0


def check(options: Nothing, session: Session) -> int:
    """Walk the chain and the state of the head, and hash everything again."""
    path = session.part(DataConfig).data_path
    with DataDirectory.open_existing(path) as directory, translated():
        store = directory.store(read_only=True)
        findings = store.check(_MOST_FINDINGS)
        head = store.head()
    for finding in findings:
        print(finding)
    if findings:
        more = " or more" if len(findings) >= _MOST_FINDINGS else ""
        print(f"{len(findings)}{more} damaged")
        return 1
    print("The database is empty." if head is None else f"No damage found up to block {head[1]} (0x{head[0].hex()}).")
    return 0


def show_size(size: int) -> str:
    """Bytes for people: 4096 is `4.0 KiB`."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


COMMANDS = (
    Command(
        "usage",
        "Show the size of the database by table.",
        usage,
        uses=(DataConfig,),
        examples=("ophion storage usage --data-path=data",),
    ),
    Command(
        "check",
        "Walk the chain and the head's state, re-hash everything and name what is damaged.",
        check,
        uses=(DataConfig,),
        examples=("ophion storage check --data-path=data",),
    ),
)
