"""The node requests and removes port mappings at the router of the UPnP tests."""

from __future__ import annotations

import pytest

from ophion.peers.port_mapping import PortMapping
from tests.unit.peers.test_upnp import Router, play


def test_both_protocols_are_mapped_and_taken_back() -> None:
    async def story(router: Router, address: tuple[str, int]) -> None:
        mapping = PortMapping("127.0.0.1", 30303, address)
        assert await mapping.ask() == "203.0.113.7"
        await mapping.release()
        for action in ("AddPortMapping", "DeletePortMapping"):
            asked = [request for request in router.requests if action in request]
            assert len(asked) == 2
            assert all(f"<NewProtocol>{protocol}<" in one for protocol, one in zip(("TCP", "UDP"), asked, strict=True))

    play(story)


def test_a_router_that_refuses_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def story(router: Router, address: tuple[str, int]) -> None:
        mapping = PortMapping("127.0.0.1", 30303, address)
        await mapping.release()
        found = router.requests.copy()
        router.refuses = "AddPortMapping"
        assert await mapping.ask() is None
        assert "the advertised address is unchanged" in caplog.text
        await mapping.release()
        assert any("DeletePortMapping" in request for request in router.requests[len(found) :])

    play(story)


@pytest.mark.parametrize("external", ["0.0.0.0", "::", "127.0.0.1", "", "999.1.1.1"])
def test_a_router_without_an_address_is_a_warning(external: str, caplog: pytest.LogCaptureFixture) -> None:
    async def story(router: Router, address: tuple[str, int]) -> None:
        router.external = external
        mapping = PortMapping("127.0.0.1", 30303, address)
        assert await mapping.ask() is None
        assert "the advertised address is unchanged error=the router has no external address" in caplog.text
        await mapping.release()

    play(story)
