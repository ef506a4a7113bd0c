"""Tests enode URLs by the rules of networking.md 6.5."""

from __future__ import annotations

import pytest

from ophion.primitives.enode import Enode, EnodeError, NodeIdError

ID = "ab" * 64


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        (f"enode://{ID}@127.0.0.1:30303", f"enode://{ID}@127.0.0.1:30303"),
        (f"ENODE://{ID.upper()}@127.0.0.1:30303", f"enode://{ID}@127.0.0.1:30303"),
        (f"enode://{ID}@127.0.0.1:30303?discport=30303", f"enode://{ID}@127.0.0.1:30303"),
        (f"enode://{ID}@127.0.0.1:30303?discport=0", f"enode://{ID}@127.0.0.1:30303?discport=0"),
        (f"enode://{ID}@127.0.0.1:30303?discport=5", f"enode://{ID}@127.0.0.1:30303?discport=5"),
        (f"enode://{ID}@[2001:DB8:0::1]:1", f"enode://{ID}@[2001:db8::1]:1"),
        (f"enode://{ID}@[::ffff:10.0.0.1]:1", f"enode://{ID}@10.0.0.1:1"),
        (f"enode://{ID}@[::]:0", f"enode://{ID}@[::]:0"),
    ],
)
def test_urls_have_one_canonical_spelling(url: str, canonical: str) -> None:
    assert str(Enode.parse(url)) == canonical


@pytest.mark.parametrize(
    "url",
    [
        "",
        "enode:",
        f"http://{ID}@127.0.0.1:30303",
        f"enode://{ID}",
        f"enode://{ID}@",
        f"enode://{ID}@127.0.0.1",
        f"enode://{ID}@127.0.0.1:",
        f"enode://{ID}@127.0.0.1:65536",
        f"enode://{ID}@127.0.0.1:-1",
        f"enode://{ID}@127.0.0.1:\u0661",
        f"enode://{ID}@localhost:30303",
        f"enode://{ID}@::1:30303",
        f"enode://{ID}@[127.0.0.1]:30303",
        f"enode://{ID}@[fe80::1%eth0]:30303",
        f"enode://{ID}@256.0.0.1:30303",
        f"enode://{ID}@127.0.0.1:30303?discport",
        f"enode://{ID}@127.0.0.1:30303?discport=x",
        f"enode://{ID}@127.0.0.1:30303?port=1",
        f"enode://{ID}@127.0.0.1:30303?discport=1&a=b",
    ],
)
def test_other_texts_are_refused_with_the_format_in_the_message(url: str) -> None:
    with pytest.raises(EnodeError, match=r"Invalid enode URL syntax\. Enode URL should have the following format"):
        Enode.parse(url)


@pytest.mark.parametrize("node_id", ["ab" * 63, "0x" + "ab" * 64, "zz" * 64, "ab" * 65])
def test_a_wrong_node_id_has_its_own_error(node_id: str) -> None:
    with pytest.raises(NodeIdError, match="exactly 128 hexadecimal characters"):
        Enode.parse(f"enode://{node_id}@127.0.0.1:30303")


@pytest.mark.parametrize("url", ["enode://@127.0.0.1:30303", "enode://127.0.0.1:30303"])
def test_a_missing_node_id_is_no_wrong_one(url: str) -> None:
    with pytest.raises(EnodeError, match=r"The node ID is missing\.") as caught:
        Enode.parse(url)
    assert not isinstance(caught.value, NodeIdError)


def test_the_discovery_port_counts_for_equality() -> None:
    one = Enode.parse(f"enode://{ID}@127.0.0.1:30303")
    other = Enode.parse(f"enode://{ID}@127.0.0.1:30303?discport=1")
    assert one != other


@pytest.mark.parametrize("host", ["validator1", "besu-node-1.besu.svc.cluster.local", "my_node_1", "4nodes"])
def test_a_host_name_is_accepted_where_it_is_asked_for(host: str) -> None:
    url = f"enode://{ID}@{host}:30303"
    named = Enode.parse(url.upper().replace("ENODE", "enode"), host_names=True)
    assert (named.host, named.ip, named.url) == (host, "", url)
    assert named.at("10.0.0.5").url == url
    with pytest.raises(EnodeError, match="host names are not accepted without --dns-enabled"):
        Enode.parse(url)


@pytest.mark.parametrize("host", ["", "999.1.1.1", "::1", "[::g]", "a b", "-a", "a..b", "a" * 64, "ä"])
def test_neither_an_address_nor_a_host_name(host: str) -> None:
    with pytest.raises(EnodeError):
        Enode.parse(f"enode://{ID}@{host}:30303", host_names=True)
