"""The port for other enclaves, which everyone may send to, leaves the memory of the other ports alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.node.listeners import enclaves_port
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.memory_budget import MemoryBudget
from ophion.testing.enclaves import EnclaveMember
from ophion.testing.node_core import DEV_CONFIG


class Holder:
    """A client whose connection is open until it is evicted."""

    is_open = True

    def cut_off(self) -> None:
        self.is_open = False


@pytest.mark.parametrize(("most", "admitted"), [(192 << 20, 64), (8 << 20, 8)])
def test_senders_of_other_enclaves_do_not_use_up_the_memory_budget(tmp_path: Path, most: int, admitted: int) -> None:
    member = EnclaveMember(tmp_path, 1)
    config = replace(DEV_CONFIG, limits=replace(DEV_CONFIG.limits, max_held_bytes=most))
    shared = SharedResources(MemoryBudget(most))
    service = enclaves_port(config, member.enclave, 0, SystemClock(), SystemEntropy(), shared, None)
    senders = [Holder() for _ in range(100)]
    for sender in senders:
        service._shared.budget.record(sender, 1 << 20)
    assert sum(sender.is_open for sender in senders) == admitted
    assert shared.budget.held == 0
