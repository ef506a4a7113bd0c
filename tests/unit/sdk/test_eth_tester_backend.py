"""Runs the test suite that eth-tester ships for backends."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("eth_tester", reason="needs eth-tester")

from eth_tester import EthereumTester
from eth_tester.exceptions import ValidationError
from eth_tester.utils.backend_testing import BaseTestBackendDirect

from ophion.sdk.eth_tester_backend import OphionBackend


@pytest.fixture
def eth_tester() -> Any:
    return EthereumTester(backend=OphionBackend())


class TestOphionBackend(BaseTestBackendDirect):  # type: ignore[misc]  # eth-tester has no type hints
    """All tests of eth-tester, except for tests of py-evm's own behaviour."""

    # The tests expect the block order of py-evm, newest block first, but Ophion follows eth_feeHistory.
    test_get_fee_history = None
    test_get_fee_history_fails = None
    # The tests expect exceptions of py-evm and of the package rlp, but Ophion raises ValidationError of eth-tester.
    test_send_raw_transaction_invalid_rlp_transaction = None
    test_send_raw_transaction_invalid_raw_transaction = None

    def test_fee_history(self, eth_tester: Any) -> None:
        eth_tester.mine_blocks(3)
        found = eth_tester.get_fee_history(2, "latest", [])
        assert (found["oldest_block"], len(found["base_fee_per_gas"])) == (2, 3)

    @pytest.mark.parametrize("raw", ["0x1234", "0xffff"])
    def test_an_invalid_raw_transaction_is_refused(self, eth_tester: Any, raw: str) -> None:
        with pytest.raises(ValidationError):
            eth_tester.send_raw_transaction(raw)
