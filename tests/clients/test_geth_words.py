"""Words of the call tracer, compared with those of a running geth (`GETH`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.geth_dev import IS_THERE, GethDev
from tests.unit.rpc.methods.test_debug_tracers import CANCUN, PRECOMPILE_FAILURES, SENDER, genesis_text


@pytest.mark.skipif(not IS_THERE, reason="GETH does not name a geth binary to compare with")
def test_failed_precompiled_contracts(tmp_path: Path) -> None:
    network = genesis_text({**CANCUN, "terminalTotalDifficultyPassed": True})
    with GethDev(tmp_path / "geth", genesis=network) as geth:
        for contract, text, words in PRECOMPILE_FAILURES:
            call = {"from": SENDER, "to": f"0x{contract:040x}", "data": "0x" + text, "gas": "0xf4240"}
            frame = geth.rpc("debug_traceCall", call, "latest", {"tracer": "callTracer"})
            assert frame["error"] == words, (contract, text)
