"""Compares error texts of the call tracer with the error texts of a running geth (`GETH`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.geth_dev import IS_THERE, GethDev, has_prague
from tests.unit.rpc.methods.test_debug_tracers import (
    CANCUN,
    PRAGUE,
    PRAGUE_FAILURES,
    PRECOMPILE_FAILURES,
    SENDER,
    genesis_text,
)


@pytest.mark.skipif(not IS_THERE, reason="GETH does not name a geth binary to compare with")
@pytest.mark.parametrize("fork", ["cancun", "prague"])
def test_failed_precompiled_contracts(fork: str, tmp_path: Path) -> None:
    if fork == "prague" and not has_prague():
        pytest.skip("this geth does not know Prague")
    config, failures = {"cancun": (CANCUN, PRECOMPILE_FAILURES), "prague": (PRAGUE, PRAGUE_FAILURES)}[fork]
    asked_for = {"terminalTotalDifficultyPassed": True, "blobSchedule": PRAGUE["blobSchedule"]}
    network = genesis_text(config | asked_for)
    with GethDev(tmp_path / "geth", genesis=network) as geth:
        for contract, text, words in failures:
            call = {"from": SENDER, "to": f"0x{contract:040x}", "data": "0x" + text, "gas": "0xf4240"}
            frame = geth.rpc("debug_traceCall", call, "latest", {"tracer": "callTracer", "timeout": "60s"})
            assert frame["error"] == words, (contract, text)
