from __future__ import annotations

import pytest

from ophion.peers.discovery.neighbor_filter import is_plausible


@pytest.mark.parametrize(
    ("ip", "port", "sender", "expected"),
    [
        ("8.8.8.8", 30303, "9.9.9.9", True),
        ("8.8.8.8", 1024, "9.9.9.9", False),
        ("8.8.8.8", 0, "9.9.9.9", False),
        ("", 30303, "9.9.9.9", False),
        ("0.0.0.0", 30303, "127.0.0.1", False),
        ("224.0.0.1", 30303, "127.0.0.1", False),
        ("240.0.0.1", 30303, "127.0.0.1", False),
        ("127.0.0.1", 30303, "127.0.0.1", True),
        ("127.0.0.1", 30303, "10.0.0.1", False),
        ("127.0.0.1", 30303, "9.9.9.9", False),
        ("10.0.0.1", 30303, "192.168.0.1", True),
        ("10.0.0.1", 30303, "127.0.0.1", True),
        ("10.0.0.1", 30303, "9.9.9.9", False),
        ("fd00::1", 30303, "fd00::2", True),
        ("2001:4860:4860::8888", 30303, "10.0.0.1", True),
        ("::", 30303, "::1", False),
    ],
)
def test_whom_one_may_name(ip: str, port: int, sender: str, expected: bool) -> None:
    assert is_plausible(ip, port, sender) is expected
