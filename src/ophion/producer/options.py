"""Options of block production and consensus. Further settings are in the genesis file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ophion.consensus.bft_form_choices import HeaderFormChoice, WireProfileChoice
from ophion.errors import ConfigError
from ophion.primitives.types import Address
from ophion.producer.vote_store_address import VoteStoreAddress, read_vote_store
from ophion.runtime.options import Options, at_least, between, hex_bytes, option, read_address

if TYPE_CHECKING:
    import ssl

MAX_EXTRA_DATA = 32
MAX_PERIOD_S = 10**9
"""Maximum seconds between blocks: about 30 years."""

_read_extra_data = hex_bytes(0, MAX_EXTRA_DATA, "extra data: expected at most 32 bytes as hex digits")


class MinerConfig(Options):
    """Block production: coinbase, prices, extra data and period of the blocks of this node."""

    enabled: bool = option("--miner-enabled", default=False, help="Produce blocks from the start.")
    coinbase: Address | None = option(
        "--miner-coinbase",
        default=None,
        parse=read_address,
        metavar="ADDRESS",
        needs="--miner-enabled",
        help="Account that gets the block rewards; proof of authority ignores it.",
    )
    min_gas_price: int = option(
        "--min-gas-price",
        default=1000,
        check=at_least(0),
        metavar="WEI",
        help="Minimum gas price in wei for the pool and the blocks of this node.",
    )
    min_priority_fee: int = option(
        "--min-priority-fee",
        default=0,
        check=at_least(0),
        metavar="WEI",
        help="Minimum priority fee in wei for the pool and the blocks of this node.",
    )
    extra_data: bytes | None = option(
        "--miner-extra-data",
        default=None,
        parse=_read_extra_data,
        metavar="HEX",
        needs="--miner-enabled",
        help="Extra data of every block, up to 32 bytes.",
    )
    block_period_s: float = option(
        "--block-period",
        default=0.0,
        metavar="SECONDS",
        check=between(0, MAX_PERIOD_S),
        help="Dev network: seconds between blocks; 0 produces a block as soon as there are transactions.",
    )
    equal_timestamps: bool = option(
        "--dev-equal-timestamps",
        default=False,
        help="Dev network: blocks within one second have the same timestamp. Otherwise each is at least a second later "
        "than its parent, and the chain's clock runs ahead while blocks come faster.",
    )
    target_gas_limit: int | None = option(
        "--target-gas-limit",
        default=None,
        check=at_least(5000),
        metavar="GAS",
        help="Target of the block gas limit. (default: keep the current limit)",
    )
    threads: int = option(
        "--miner-threads",
        default=1,
        check=at_least(0),
        help="Threads of the proof-of-work miner; 0 leaves mining to external miners.",
    )

    def problems(self) -> Iterator[str]:
        if self.enabled and self.coinbase is None:
            yield (
                "Unable to mine without a valid coinbase. Either disable mining (remove --miner-enabled)or specify the"
                " beneficiary of mining (via --miner-coinbase <Address>)"
            )


class ConsensusConfig(Options):
    """Consensus: round timeouts, message formats of older clients, and the vote store that nodes with one validator key
    share.
    """

    max_round_timeout_s: float = option(
        "--bft-max-round-timeout",
        default=60.0,
        metavar="SECONDS",
        help="IBFT 2.0 and QBFT: maximum round timeout in seconds. Timeouts double with each round up to this.",
    )
    follows_others: bool = option(
        "--bft-early-round-change",
        default=True,
        help="IBFT 2.0 and QBFT: follow f + 1 validators to a later round at once, before the timeout.",
    )
    passes_over: bool = option(
        "--bft-pass-over-absent",
        default=True,
        help="IBFT 2.0 and QBFT: skip rounds of a proposer that missed a round or disconnected, until a message of it "
        "arrives.",
    )
    wire_profile: WireProfileChoice = option(
        "--bft-wire-profile",
        default=WireProfileChoice.AUTO,
        help="IBFT 2.0 and QBFT: write messages as Besu up to 25.12 does (classic), as Besu from 26.1 on does (bal), "
        "or as the connected validators understand them (auto).",
    )
    header_form: HeaderFormChoice = option(
        "--bft-header-form",
        default=HeaderFormChoice.AUTO,
        help="IBFT 2.0 and QBFT: form of the first header after Shanghai; later headers keep it. full: all fields of "
        "the forks. short: no fields after the base fee, as Besu 25.12. short-blobs: with blob gas in Cancun, as "
        "Besu 24.5.2 and later. auto: as the genesis file or the connected validators.",
    )

    vote_store: VoteStoreAddress | None = option(
        "--vote-store",
        default=None,
        parse=read_vote_store,
        metavar="etcd://HOST:PORT[,HOST:PORT…]/PREFIX",
        help="IBFT 2.0, QBFT and Clique: store each vote in this etcd cluster before it is sent. Several nodes may "
        "then use one validator key: at most one of two conflicting messages is sent. (default: votes only in the "
        "database)",
    )

    vote_store_ca_file: Path | None = option(
        "--vote-store-ca-file",
        default=None,
        help="Certificates (PEM) of the authorities that sign the vote store's certificate. (default: the system's)",
    )
    vote_store_certificate_file: Path | None = option(
        "--vote-store-certificate-file", default=None, help="Certificate (PEM) that this node shows to the vote store."
    )
    vote_store_key_file: Path | None = option(
        "--vote-store-key-file", default=None, help="Private key (PEM) of --vote-store-certificate-file."
    )

    @property
    def votes_over_tls(self) -> bool:
        """Whether the connection to the vote store is encrypted."""
        return self.vote_store is not None and self.vote_store.speaks_tls

    def vote_store_tls(self) -> ssl.SSLContext | None:
        """Return the TLS context of the vote store, or None without TLS. Raises `ConfigError`."""
        if not self.votes_over_tls:
            return None
        import ssl  # lazy import: few nodes need this module

        flag, file, problem = "--vote-store-ca-file", self.vote_store_ca_file, "not a certificate in PEM form"
        try:
            context = ssl.create_default_context(cafile=file)
            if self.vote_store_certificate_file is not None:
                flag, file = "--vote-store-certificate-file", self.vote_store_certificate_file
                ssl.create_default_context(cafile=file)
                problem = "it has no private key without a password: name the key with --vote-store-key-file"
                if self.vote_store_key_file is not None:
                    flag, file = "--vote-store-key-file", self.vote_store_key_file
                    problem = "not the private key of the certificate in PEM form, or encrypted"
                # with a password, OpenSSL refuses an encrypted key instead of asking the terminal for one
                context.load_cert_chain(self.vote_store_certificate_file, self.vote_store_key_file, password="")
        except ssl.SSLError as error:
            raise ConfigError(f"{flag}: {file} cannot be used: {problem}.") from error
        except OSError as error:
            raise ConfigError(f"{flag}: {file} cannot be read: {error.strerror or error}.") from error
        return context

    def problems(self) -> Iterator[str]:
        files = (self.vote_store_ca_file, self.vote_store_certificate_file, self.vote_store_key_file)
        if any(file is not None for file in files) and not self.votes_over_tls:
            yield "--vote-store-ca-file, --vote-store-certificate-file and --vote-store-key-file need --vote-store=etcds://…"
        if self.vote_store_key_file is not None and self.vote_store_certificate_file is None:
            yield "--vote-store-key-file needs --vote-store-certificate-file."
        if not self.max_round_timeout_s > 0:
            yield f"Invalid value for option '--bft-max-round-timeout': {self.max_round_timeout_s} is not above 0"
