"""`ophion proof`: proofs of transactions and accounts for auditors."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from ophion.chain.chain import Chain
from ophion.cli.command import Command, CommandSession
from ophion.cli.node_client import RpcNode
from ophion.cli.url_option import read_url
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError, ConfigError, GenesisError, OphionError, ProofError
from ophion.native.exceptions import translated
from ophion.node.datadir import DataConfig, DataDirectory
from ophion.node.network import NetworkConfig, load_genesis
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import Address, Hash32
from ophion.proofs.builder import account_bundle, transaction_bundle
from ophion.proofs.bundle import MAX_BUNDLE_BYTES, ProofBundle
from ophion.proofs.trust_anchor import read_trust
from ophion.proofs.verify import ProvenAccount, ProvenTransaction, VerifiedProof, verify_bundle
from ophion.runtime.operator_files import content_of
from ophion.runtime.options import Options, at_least, option

_MAX_TRUST_BYTES = 256 * 2**20
_SHOWN_BYTES = 64


def _hex(length: int, what: str) -> Callable[[str], bytes]:
    def read(text: str) -> bytes:
        try:
            found = bytes.fromhex(text.removeprefix("0x"))
        except ValueError:
            found = b""
        if len(found) != length:
            raise ValueError(f"expected {what} of {length} bytes in hexadecimal but was '{text}'")
        return found

    return read


def _account(text: str) -> tuple[Address, tuple[Hash32, ...]]:
    address, *slots = text.split(":")
    try:
        positions = tuple(int(slot, 0).to_bytes(32, "big") for slot in slots)
    except (ValueError, OverflowError):
        raise ValueError(f"expected ADDRESS[:SLOT] with slots as numbers but was '{text}'") from None
    return _hex(20, "an address")(address), positions


class ExportOptions(Options):
    """Options: target file, proved items and node of `ophion proof export`."""

    target: Path = option("--to", metavar="FILE", help="File to write.")
    transaction: bytes | None = option(
        "--tx", default=None, parse=_hex(32, "a transaction hash"), metavar="HASH", help="Transaction to prove."
    )
    block: int | None = option(
        "--block", default=None, check=at_least(1), help="Block after which accounts are proven, without --tx."
    )
    accounts: tuple[tuple[Address, tuple[Hash32, ...]], ...] = option(
        "--account",
        default=(),
        parse=_account,
        metavar="ADDRESS[:SLOT...]",
        help="Accounts to prove after the block, each with storage slots.",
    )
    by_checkpoint: bool = option(
        "--by-checkpoint",
        default=False,
        help="Omit the history of validators, for an auditor who trusts the hash of the block.",
    )
    rpc: str | None = option(
        "--rpc",
        default=None,
        parse=read_url("http", "https"),
        metavar="URL",
        help="Ask a running node (eth_getProofBundle) instead of reading --data-path.",
    )


class VerifyOptions(Options):
    """Options: trusted data and output format of `ophion proof verify`."""

    trust: Path = option("--trust", metavar="FILE", help="Genesis file of the network.")
    checkpoint: Path | None = option(
        "--checkpoint",
        default=None,
        metavar="FILE",
        help="A later trusted block: JSON with number, hash and validators.",
    )
    as_json: bool = option("--json", default=False, help="Print the proven statement as JSON.")


def export(options: ExportOptions, session: CommandSession) -> int:
    """Write a proof to a file."""
    if options.transaction is None and (options.block is None or not options.accounts):
        raise ConfigError("Name what to prove: --tx=HASH, or --account=ADDRESS with --block=NUMBER")
    if options.transaction is not None and options.block is not None:
        raise ConfigError("--block is for proofs without --tx; a transaction is proven in its own block")
    wanted = {address: list(slots) for address, slots in options.accounts}
    bundle = _stored(options, session, wanted) if options.rpc is None else _asked(options.rpc, options, wanted)
    unfinished = options.target.with_name(f".unfinished-{options.target.name}")
    try:
        options.target.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(bundle.encode())
        os.replace(unfinished, options.target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise CommandError(f"Cannot write {options.target}: {error.strerror}.") from error
    print(
        f"Wrote a proof of block {bundle.number} ({bundle.consensus}) to {options.target}: {len(bundle.encode()):,}"
        f" bytes, {len(bundle.votes)} headers with votes, {len(bundle.confirmations)} confirmations"
    )
    return 0


def _stored(options: ExportOptions, session: CommandSession, wanted: dict[Address, list[Hash32]]) -> ProofBundle:
    genesis = load_genesis(session.part(NetworkConfig))
    with closing(DataDirectory.beside_a_node(session.part(DataConfig).data_path)) as directory, translated():
        store = directory.store(read_only=True)
        if store.head() is None:
            raise CommandError(f"There is no chain in {session.part(DataConfig).data_path}.")
        try:
            chain = Chain.open(store, genesis, engine_for(genesis.spec))
        except GenesisError as error:
            raise CommandError(f"A proof needs the genesis file of the network (--genesis-file). {error}") from error
        if options.transaction is not None:
            return transaction_bundle(chain, options.transaction, wanted, options.by_checkpoint)
        assert options.block is not None
        return account_bundle(chain, options.block, wanted, options.by_checkpoint)


def _asked(url: str, options: ExportOptions, wanted: dict[Address, list[Hash32]]) -> ProofBundle:
    answer = RpcNode(url).ask(
        "eth_getProofBundle",
        None if options.transaction is None else data(options.transaction),
        {data(address): [data(slot) for slot in slots] for address, slots in wanted.items()},
        None if options.block is None else quantity(options.block),
        options.by_checkpoint,
    )
    try:
        return ProofBundle.from_object(answer)
    except ProofError as error:
        raise CommandError(f"The node at {url} does not answer with a proof: {error}.") from error


def verify(options: VerifyOptions, session: CommandSession) -> int:
    """Verify a proof without a node."""
    if len(session.words) != 1:
        raise ConfigError("Name one file to verify: ophion proof verify proof.json --trust=genesis.json")
    path = Path(session.words[0])
    bundle = _content(path, MAX_BUNDLE_BYTES)
    genesis = _content(options.trust, _MAX_TRUST_BYTES)
    checkpoint = None if options.checkpoint is None else _content(options.checkpoint, _MAX_TRUST_BYTES)
    try:
        trust = read_trust(genesis, checkpoint)
    except OphionError as error:
        raise CommandError(f"{options.trust}: {error}") from error
    try:
        proven = verify_bundle(ProofBundle.decode(bundle), trust)
    except ProofError as error:
        raise CommandError(f"The proof in {path} does not hold. {error}") from error
    if options.as_json:
        print(json.dumps(proven.as_object(), indent=2))
    else:
        _show(proven)
    return 0


def _content(path: Path, limit: int) -> bytes:
    try:
        return content_of(path, limit)
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise CommandError(f"Cannot read {path}: {error}.") from error


def _show(proven: VerifiedProof) -> None:
    made = datetime.fromtimestamp(proven.timestamp, UTC).isoformat().replace("+00:00", "Z")
    print("The proof holds.")
    print(f"block {proven.number} hash={data(proven.hash)} time={made}")
    if proven.validators:
        print(f"sealed by {len(proven.sealers)} of {proven.validators} validators:")
        for sealer in proven.sealers:
            print(f"  {data(sealer)}")
    else:
        print("trusted by the checkpoint")
    if proven.transaction is not None:
        _show_transaction(proven.transaction)
    for account in proven.accounts:
        _show_account(account)


def _show_transaction(found: ProvenTransaction) -> None:
    transaction = found.transaction
    print(f"transaction {data(transaction.hash)} index={found.index}")
    print(f"  from {data(transaction.sender)}")
    print(f"  to {'(creates a contract)' if transaction.to is None else data(transaction.to)}")
    print(f"  value {transaction.value} wei")
    print(f"  input {_short(transaction.input)}")
    status = {b"\1": "succeeded", b"": "failed"}.get(found.status, f"state root {data(found.status)}")
    print(f"  {status}, {len(found.logs)} logs")
    for position, log in enumerate(found.logs):
        print(f"  log {position} of {data(log.address)}")
        for topic in log.topics:
            print(f"    topic {data(topic)}")
        print(f"    data {_short(log.data)}")


def _show_account(account: ProvenAccount) -> None:
    exists = "" if account.exists else " (does not exist)"
    print(f"account {data(account.address)} nonce={account.nonce} balance={account.balance} wei{exists}")
    for key, value in account.slots:
        print(f"  slot {data(key)} = {quantity(value)}")


def _short(content: bytes) -> str:
    shown = data(content[:_SHOWN_BYTES])
    return shown if len(content) <= _SHOWN_BYTES else f"{shown}... ({len(content)} bytes)"


COMMANDS = (
    Command(
        "export",
        "Write a proof of a transaction, its receipt and logs, and of accounts.",
        export,
        ExportOptions,
        uses=(DataConfig, NetworkConfig),
        examples=(
            "ophion proof export --data-path=data --genesis-file=genesis.json --tx=0x... --to=proof.json",
            "ophion proof export --rpc=http://localhost:8545 --tx=0x... --account=0x...:0 --to=proof.json",
        ),
    ),
    Command(
        "verify",
        "Verify a proof with the genesis file of the network, without a node.",
        verify,
        VerifyOptions,
        words="FILE",
        examples=("ophion proof verify proof.json --trust=genesis.json",),
    ),
)
