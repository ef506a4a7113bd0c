"""`ophion privacy`: private transactions from a terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from ophion.chain.pruning import has_dropped_states
from ophion.cli.command import Command, CommandSession, NoOptions
from ophion.cli.node_client import NodeOptions, RpcNode
from ophion.cli.privacy_keygen import KEYGEN
from ophion.enclave import encoding
from ophion.enclave.encoding import base64_text
from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import KEY_SIZE
from ophion.enclave.purge_unreferenced import purge_unmarked
from ophion.enclave.store_writer import CURSORS, PAYLOADS, damaged_payloads
from ophion.errors import CommandError
from ophion.native.crypto import PrivateKey
from ophion.native.exceptions import translated
from ophion.native.privacy import PrivateLedger, sign_private_transaction
from ophion.node.datadir import DataConfig, DataDirectory
from ophion.node.node_key_file import load_key
from ophion.node.privacy import ANOTHER_DATABASE
from ophion.primitives.hexcodec import HexError, data, parse_data_lenient
from ophion.primitives.types import Address
from ophion.privacy.marker_settings import known_keys
from ophion.runtime.options import at_least, option, read_address
from ophion.runtime.terminal_text import escape_line

_POLL_S: Final = 0.1
_GAS: Final = 3_000_000
_MAX_UNFOLLOWED: Final = 256
"""Maximum number of blocks between the last block whose private transactions were executed and the head."""
_MAX_DAMAGED: Final = 1_000_000


def read_key(text: str) -> bytes:
    """Decode an enclave key or a group id from base64."""
    try:
        return encoding.read_key(text)
    except ValueError:
        raise ValueError(f"'{text}' is not base64 of {KEY_SIZE} bytes") from None


def _read_data(text: str) -> bytes:
    try:
        return parse_data_lenient(text)
    except HexError as error:
        raise ValueError(str(error)) from None


class SendOptions(NodeOptions):
    """Options: sender, recipients and content of `ophion privacy send`."""

    key_file: Path = option("--key-file", help="Private key of the account that sends.")
    private_for: tuple[bytes, ...] = option(
        "--for", default=(), parse=read_key, metavar="KEY", help="Enclave keys of the recipients, separated by commas."
    )
    group: bytes | None = option(
        "--group", default=None, parse=read_key, metavar="ID", help="A group instead of recipients."
    )
    private_from: bytes | None = option(
        "--from", default=None, parse=read_key, metavar="KEY", help="Enclave key of the sender. (default: the node's)"
    )
    to: Address | None = option(
        "--to", default=None, parse=read_address, metavar="ADDRESS", help="Contract to call; without it, create one."
    )
    data: bytes = option("--data", default=b"", parse=_read_data, metavar="HEX", help="Contract code or call data.")
    wait_s: int = option(
        "--wait", default=60, check=at_least(1), metavar="SECONDS", help="Seconds to wait for the block."
    )


class CallOptions(NodeOptions):
    """Options: group and call data of `ophion privacy call`."""

    group: bytes = option("--group", parse=read_key, metavar="ID", help="Id of the group whose state the call reads.")
    to: Address = option("--to", parse=read_address, metavar="ADDRESS", help="Address of the contract.")
    data: bytes = option("--data", default=b"", parse=_read_data, metavar="HEX", help="Call data.")


def status(options: NodeOptions, session: CommandSession) -> int:
    """Print the status of a running node's enclave: keys, connected enclaves, groups and undelivered payloads."""
    node = options.node()
    found = node.ask("priv_status")
    with node.reading("priv_status"):
        _show_status(found)
    return 0


def _show_status(found: dict[str, Any]) -> None:
    _show("mode", f"{found.get('mode', 'external')}, delivery {found.get('delivery', 'by the enclave')}")
    for key in found.get("keys", ()):
        _show("key", key)
    for key, lines in found.get("peers", {}).items():
        _show("peer", f"{key}  {', '.join(lines)}")
    for key, count in found.get("outbox", {}).items():
        _show("outbox", f"{key}  {count} waiting")
    for group, root in found.get("states", {}).items():
        _show("group", f"{group}  root {root}")
    _show("followed", f"block {int(found['followed'], 16)} of {int(found['head'], 16)}")
    _show("executed", f"{found['executed']}, late {found['late']}")
    if found["waitsForEnclave"]:
        _show("waiting", "the enclave does not answer")


def _show(name: str, text: object) -> None:
    """Print a line of text from a node, with unsafe characters escaped."""
    print(f"{escape_line(name):<11} {escape_line(str(text))}")


def send(options: SendOptions, session: CommandSession) -> int:
    """Sign and send a private transaction, then wait for its result."""
    if options.group is not None and options.private_for:
        raise CommandError("--group and --for exclude each other.")
    key, node = load_key(options.key_file), options.node()
    with node.reading("a private transaction"):
        return _send(options, key, node)


def _send(options: SendOptions, key: PrivateKey, node: RpcNode) -> int:
    private_from = options.private_from
    if private_from is None:
        private_from = read_key(node.ask("priv_status")["keys"][0])
    group = options.group or legacy_id([private_from, *options.private_for])
    nonce = node.ask("priv_getTransactionCount", data(key.address), base64_text(group))
    raw = sign_private_transaction(
        key.secret(),
        nonce=int(nonce, 16),
        gas_price=0,
        gas_limit=_GAS,
        to=options.to,
        data=options.data,
        private_from=private_from,
        private_for=None if options.group is not None else options.private_for,
        privacy_group_id=options.group,
        chain_id=int(node.ask("eth_chainId"), 16),
    )
    marker = node.ask("eea_sendRawTransaction", data(raw))
    _show("marker", marker)
    _show("group", base64_text(group))
    receipt = _receipt(node, marker, options.wait_s)
    _show("block", int(receipt["blockNumber"], 16))
    if receipt["contractAddress"] is not None:
        _show("contract", receipt["contractAddress"])
    if receipt["status"] != "0x1":
        explained = node.ask("priv_explain", marker)
        _show(explained["state"], explained.get("reason", ""))
        return 1
    return 0


def _receipt(node: RpcNode, marker: str, limit_s: int) -> dict[str, Any]:
    deadline = time.monotonic() + limit_s
    while (receipt := node.ask("priv_getTransactionReceipt", marker)) is None:
        if time.monotonic() > deadline:
            raise CommandError(f"The marker {marker} was not mined within {limit_s} seconds.")
        time.sleep(_POLL_S)
    found: dict[str, Any] = receipt
    return found


def call(options: CallOptions, session: CommandSession) -> int:
    """Call a contract in the private state of a group, without a transaction."""
    request = {"to": data(options.to), "data": data(options.data)}
    print(escape_line(str(options.node().ask("priv_call", base64_text(options.group), request, "latest"))))
    return 0


def rebuild(options: NoOptions, session: CommandSession) -> int:
    """Delete all private states and damaged payloads. At the next start, the node requests missing payloads again, and
    rebuilds the states from chain and payloads.
    """
    path = session.part(DataConfig).data_path
    with DataDirectory.open_existing(path) as directory, translated():
        store = directory.store()
        if has_dropped_states(store):
            raise CommandError(
                "Nothing was changed: private states could not be made again, because states that they are built on"
                f" have been dropped from this database (--state-history). {ANOTHER_DATABASE}"
            )
        # clear the cursors of the peers before the payloads: if the command is interrupted in between, the node only
        # requests payloads again
        store.clear_rows([CURSORS])
        damaged = damaged_payloads(store, _MAX_DAMAGED)
        store.write_rows([(PAYLOADS, key, None) for key in damaged])
        PrivateLedger(store).clear()
    print("Private states are forgotten. The node executes all private transactions again when it starts, and asks")
    print("the other members for payloads that it misses.")
    if damaged:
        print(f"Payloads that were damaged are forgotten too: {len(damaged)}.")
    return 0


def purge(options: NoOptions, session: CommandSession) -> int:
    """Delete payloads and groups that other enclaves sent, if no marker transaction on the chain refers to them."""
    path = session.part(DataConfig).data_path
    with DataDirectory.open_existing(path) as directory, translated():
        store = directory.store()
        followed, head = PrivateLedger(store).followed(), store.head()
        if followed is None or (head is not None and followed[1] + _MAX_UNFOLLOWED < head[1]):
            raise CommandError(
                "Nothing was deleted: private transactions have not been executed up to the head, so markers"
                " may be missing. Start the node, wait until it has caught up, stop it, and purge then."
            )
        payloads, groups = purge_unmarked(store, known_keys(store))
    print(f"Deleted {payloads} payloads and {groups} groups of other enclaves without a transaction on the chain.")
    return 0


COMMANDS = (
    KEYGEN,
    Command(
        "status",
        "Show keys, groups, peers and outbox of a running node.",
        status,
        NodeOptions,
        examples=("ophion privacy status --rpc=http://127.0.0.1:8545",),
    ),
    Command(
        "send",
        "Send a private transaction and wait for it.",
        send,
        SendOptions,
        examples=(
            "ophion privacy send --key-file=account.key --for=Ko2bVqD+nNlNYL5EE7y3IdOnviftjiizpjRt+HTuFBs= --data=0x…",
        ),
    ),
    Command(
        "call",
        "Ask a private contract.",
        call,
        CallOptions,
        examples=(
            "ophion privacy call --group=DyAOiF/ynpc+JXa2YAGB0bCitSlOMNm+ShmB/7M6C4w= --to=0xebf5… --data=0x6d4ce63c",
        ),
    ),
    Command(
        "rebuild",
        "Forget private states, so that a stopped node executes all private transactions again.",
        rebuild,
        uses=(DataConfig,),
        examples=("ophion privacy rebuild --data-path=data",),
    ),
    Command(
        "purge",
        "Delete payloads and groups of other enclaves without a transaction on the chain, while the node is stopped.",
        purge,
        uses=(DataConfig,),
        examples=("ophion privacy purge --data-path=data",),
    ),
)
