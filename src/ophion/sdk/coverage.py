"""`Coverage`: lines and branches of Solidity and Vyper source that tests have executed.

Each transaction and each call is traced again (`vmTrace`), so that tests take longer while coverage is on. A branch is
a condition in the source; it has two outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, field

from ophion.abi.artifact import Artifact
from ophion.sdk.source_map import SourceMap

_SOURCE_FOLDERS = ("", "src", "contracts")
_MAX_SHOWN = 60


class ContractCoverage(Struct):
    """Executed instructions of one contract."""

    name: str
    path: str
    runtime: bytes
    lines: dict[int, int]
    branches: dict[int, int]
    executed: set[int] = field(default_factory=set)
    outcomes: set[tuple[int, bool]] = field(default_factory=set)
    """Program counters of executed conditional jumps, each with whether the jump was taken."""

    def line_hits(self) -> dict[int, bool]:
        """Return, for each line with statements, whether it was executed."""
        hits: dict[int, bool] = {}
        for pc, line in self.lines.items():
            hits[line] = hits.get(line, False) or pc in self.executed
        return hits

    def missing_branches(self) -> list[int]:
        """Return the lines of conditions with an outcome that never occurred."""
        wanted = {(pc, is_taken) for pc in self.branches for is_taken in (False, True)}
        return sorted(self.branches[pc] for pc, _ in wanted - self.outcomes)

    def matches(self, code: bytes) -> bool:
        """Whether this code belongs to the contract. Ignores immutable variables, which are zero in the artifact."""
        own = self.runtime
        return len(code) == len(own) and all(a == b or a == 0 for a, b in zip(own, code, strict=True))


class Coverage:
    """Collects what the transactions and calls of a chain have executed."""

    def __init__(self, artifacts: Iterable[tuple[Artifact, Path]], root: Path) -> None:
        """Create the coverage record. Each of `artifacts` is an artifact with its file. Artifacts without source map or
        source are left out.
        """
        self.contracts: list[ContractCoverage] = []
        self._known: dict[str, ContractCoverage | None] = {}
        for artifact, file in artifacts:
            path = _source_path(file, root)
            if path is not None and artifact.source_map and artifact.runtime:
                mapped = SourceMap(artifact.runtime, artifact.source_map, path.read_text("utf-8"))
                shown = str(path.relative_to(root)) if path.is_relative_to(root) else path.name
                self.contracts.append(
                    ContractCoverage(artifact.name, shown, artifact.runtime, mapped.lines, mapped.branches)
                )

    def add(self, trace: Mapping[str, Any] | None) -> None:
        """Add a trace of `trace_replayTransaction` or `trace_call` with `vmTrace`."""
        machine = None if trace is None else trace.get("vmTrace")
        if machine is not None:
            self._walk(machine)

    def _walk(self, machine: Mapping[str, Any]) -> None:
        contract = self._contract(machine["code"])
        ops = machine["ops"]
        for place, op in enumerate(ops):
            pc = op["pc"]
            if contract is not None:
                contract.executed.add(pc)
                if pc in contract.branches and place + 1 < len(ops):
                    contract.outcomes.add((pc, ops[place + 1]["pc"] != pc + 1))
            if op.get("sub"):
                self._walk(op["sub"])

    def _contract(self, code: str) -> ContractCoverage | None:
        if code not in self._known:
            raw = bytes.fromhex(code[2:])
            self._known[code] = next((one for one in self.contracts if one.matches(raw)), None)
        return self._known[code]

    # --- results --------------------------------------------------------------------------------

    def as_json(self) -> dict[str, Any]:
        """Return the executed instructions by contract, for `merge`."""
        return {one.name: [sorted(one.executed), sorted(one.outcomes)] for one in self.contracts}

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add the executed instructions that another process has recorded."""
        for one in self.contracts:
            executed, outcomes = other.get(one.name, ((), ()))
            one.executed.update(executed)
            one.outcomes.update((pc, is_taken) for pc, is_taken in outcomes)

    def text(self) -> str:
        """Return a table of the executed contracts, with the lines that were not executed."""
        lines = [f"{'contract':<32}{'lines':>14}{'branches':>14}  not executed"]
        for one in sorted(self.contracts, key=lambda one: (one.path, one.name)):
            if not one.executed:
                continue
            hits = one.line_hits()
            missing = [f"{line}" for line, is_hit in sorted(hits.items()) if not is_hit]
            missing += [f"{line}?" for line in one.missing_branches() if hits.get(line, True)]
            shown = ", ".join(missing)
            lines.append(
                f"{one.path + ':' + one.name:<32}{_share(sum(hits.values()), len(hits)):>14}"
                f"{_share(len(one.outcomes), 2 * len(one.branches)):>14}  "
                f"{shown if len(shown) <= _MAX_SHOWN else shown[: _MAX_SHOWN - 1] + '…'}"
            )
        return "\n".join([*lines, "N: line N, N?: an outcome of the condition in line N"])

    def write_lcov(self, path: Path) -> None:
        """Write the lines in the format of lcov, which editors and CI services read."""
        parts = []
        for one in self.contracts:
            hits = one.line_hits()
            parts += [f"SF:{one.path}", *(f"DA:{line},{int(is_hit)}" for line, is_hit in sorted(hits.items()))]
            parts += [f"LF:{len(hits)}", f"LH:{sum(hits.values())}", "end_of_record"]
        path.write_text("\n".join(parts) + "\n", "utf-8")


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} {100 * part // whole}%" if whole else "-"


def _source_path(artifact: Path, root: Path) -> Path | None:
    """Return the source file of an artifact: its `sourceName`, or the path that Foundry's metadata names. None if there
    is no such file.
    """
    document = orjson.loads(artifact.read_bytes())
    names = [document.get("sourceName"), (document.get("ast") or {}).get("absolutePath")]
    target = ((document.get("metadata") or {}).get("settings") or {}).get("compilationTarget") or {}
    for name in (*filter(None, names), *target):
        for base in (root, artifact.parent, *artifact.parents[1:4]):
            for folder in _SOURCE_FOLDERS:
                path = base / folder / str(name)
                if path.is_file():
                    return path
    return None
