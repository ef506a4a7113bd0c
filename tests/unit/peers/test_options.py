from __future__ import annotations

import pytest

from ophion.peers.options import (
    PeerConfig,
    SyncMode,
    read_bootnode,
    read_checkpoint,
    read_host,
    read_identity,
    read_ip,
)

NODE_ID = "ab" * 64


@pytest.mark.parametrize(
    ("text", "ip"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("[::1]", "::1"),
        ("::", "::"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_addresses(text: str, ip: str) -> None:
    assert read_ip(text) == ip


@pytest.mark.parametrize("text", ["", "localhost", "10.0.0", "10.0.0.1:30303", "10.0.0.1/8", "node.example.org"])
def test_names_are_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="is not an IP address"):
        read_ip(text)


def test_the_advertised_host_may_be_a_name() -> None:
    assert [read_host(text) for text in ("Node.example.org", "[::1]")] == ["node.example.org", "::1"]
    with pytest.raises(ValueError, match="is not an IP address"):
        read_host("10.0.0")
    named = PeerConfig(host="node.example.org")
    assert "host names are not accepted without --dns-enabled" in next(iter(named.problems()))
    assert not list(PeerConfig(host="node.example.org", dns_enabled=True).problems())


def test_a_checkpoint_is_a_path_or_an_address() -> None:
    for text in ("backup", "/srv/chain.tar", "https://example.org/chain.tar.gz", "http://[::1]:8080/a"):
        assert read_checkpoint(text) == text
    for text in ("ftp://example.org/a", "https://", "http://example.org:x/a", "file:///srv/a"):
        with pytest.raises(ValueError, match="neither a path nor an address"):
            read_checkpoint(text)
    (problem,) = PeerConfig(sync_mode=SyncMode.CHECKPOINT).problems()
    assert problem == "--sync-mode=CHECKPOINT needs --sync-checkpoint: the backup to start from."
    assert not list(PeerConfig(sync_mode=SyncMode.CHECKPOINT, sync_checkpoint="a").problems())


def test_a_bootnode_must_be_askable() -> None:
    assert read_bootnode(f"enode://{NODE_ID}@10.0.0.1:30303?discport=30301").udp_port == 30301
    with pytest.raises(ValueError, match="Bootnodes must have discovery enabled"):
        read_bootnode(f"enode://{NODE_ID}@10.0.0.1:30303?discport=0")
    with pytest.raises(ValueError, match="Invalid enode URL syntax"):
        read_bootnode("enode://10.0.0.1:30303")


def test_an_identity_fits_into_a_client_name() -> None:
    assert read_identity("validator-1 (lab)") == "validator-1 (lab)"
    for text in ("", "a/b", " a", "a\n", "x" * 65, "häuschen"):
        with pytest.raises(ValueError, match="cannot be shown to peers"):
            read_identity(text)


def test_defaults_are_those_of_the_original() -> None:
    config = PeerConfig()
    assert (config.host, config.interface, config.port, config.max_peers) == ("127.0.0.1", "0.0.0.0", 30303, 25)
    assert (config.limit_remote, config.max_remote_percentage) == (True, 60)
    assert config.bootnodes is None
