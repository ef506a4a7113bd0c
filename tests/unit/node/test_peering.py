from __future__ import annotations

import json
from pathlib import Path

import pytest

from ophion.errors import ConfigError
from ophion.native.crypto import PrivateKey
from ophion.node.peering import build_peers, peer_settings
from ophion.peers.options import PeerConfig
from ophion.peers.policy.admission import PeerLimits
from ophion.primitives.enode import Enode
from ophion.runtime.clock import SystemClock, SystemEntropy

ONE = Enode(b"\x07" * 64, "127.0.0.1", 30303, 30303)


def test_options_become_settings(tmp_path: Path) -> None:
    settings = peer_settings(PeerConfig(identity="validator-1"), tmp_path)
    assert (settings.host, settings.interface, settings.port) == ("127.0.0.1", "0.0.0.0", 30303)
    assert settings.limits == PeerLimits(25, 15)
    assert settings.client_id.startswith("ophion/validator-1/v")
    assert settings.static == ()
    assert peer_settings(PeerConfig(limit_remote=False), tmp_path).limits == PeerLimits(25, None)


def test_static_nodes_come_from_the_data_path_or_from_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "static-nodes.json").write_text(json.dumps([ONE.url]))
    other = tmp_path / "others.json"
    other.write_text("[]")
    assert peer_settings(PeerConfig(), tmp_path).static == (ONE,)
    assert peer_settings(PeerConfig(static_nodes_file=other), tmp_path).static == ()
    with pytest.raises(ConfigError, match="does not exist"):
        peer_settings(PeerConfig(static_nodes_file=tmp_path / "none.json"), tmp_path)


def test_the_own_node_in_the_file_is_skipped(tmp_path: Path) -> None:
    key = PrivateKey(bytes(31) + b"\x01")
    own = Enode(key.public_key, "127.0.0.1", 30303, 30303)
    (tmp_path / "static-nodes.json").write_text(json.dumps([own.url, ONE.url]))
    service = build_peers(PeerConfig(), key, (), tmp_path, SystemClock(), SystemEntropy())
    assert service.plan.static_nodes == (ONE,)
