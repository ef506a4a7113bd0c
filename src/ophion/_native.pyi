"""Type stub of the Rust extension. Only `ophion.native` imports this module.

Hashes, addresses and raw encodings are `bytes`; amounts are `int`. Calls that may take longer than a few
microseconds release the GIL. All classes are frozen. Expected failures raise a subclass of `NativeError`; a panic is
a bug."""

from collections.abc import Callable, Sequence
from typing import Any, final

__version__: str

def keeps(stub: str, /) -> bool:
    """Return whether the extension was built from the same declarations as this file. Docstrings and comments may
    differ."""

# --- errors -------------------------------------------------------------------------------------

class NativeError(Exception):
    """Base of all exceptions of the extension."""

class StorageError(NativeError):
    """The database cannot be opened, read or written: full disk, read-only path, newer version, or damage."""

class DecodeError(NativeError):
    """The bytes are malformed; the message names the part."""

class InvalidBody(NativeError):
    """A transaction of a block breaks a rule; the message starts with `transaction N:`."""

class MissingState(NativeError):
    """The state of this root is not in the database."""

class TimedOut(NativeError):
    """A block, trace or simulation was stopped, because its deadline passed or the client disconnected."""

class CallRefused(NativeError):
    """A simulated transaction breaks a rule; the message is the `reason` of an invalid `CallOutcome`."""

class NotDownloaded(NativeError):
    """The body and the receipts of a block are not downloaded yet; the message names the lowest block that has them."""

class SourceFailed(NativeError):
    """The source of a forked chain does not answer or answers with an error."""

class NotFetched(NativeError):
    """A value of a forked chain is not fetched yet, and this thread must not wait for it."""

# --- crypto -------------------------------------------------------------------------------------

def keep_freed(max_bytes: int, /) -> None:
    """Let each heap hold up to `max_bytes` of freed memory. Further freed memory returns to the system at once."""

def note_heap() -> None:
    """Register the heap of the calling thread, so that `give_back` can trim it. Only long-lived threads need this."""

def give_back() -> None:
    """Return free memory to the system, including the free memory of registered heaps. Releases the GIL."""

def keccak256(data: bytes, /) -> bytes: ...
def public_key(secret: bytes, /) -> bytes:
    """Return the public key: 64 bytes, without the 04 prefix. Raises DecodeError if the secret is not a valid key."""

def address_of(public_key: bytes, /) -> bytes: ...
def sign(secret: bytes, digest: bytes, /) -> bytes:
    """Sign a digest. Returns r || s || v with v 0 or 1; the signature is deterministic (RFC 6979) with low s."""

def recover(digest: bytes, signature: bytes, /) -> bytes:
    """Return the 64-byte public key of a 65-byte signature (v 0 or 1)."""

def recover_address(digest: bytes, signature: bytes, /) -> bytes: ...
def recover_addresses(pairs: Sequence[tuple[bytes, bytes]], /) -> list[bytes | None]:
    """Recover the signers of many (digest, signature) pairs on all cores. An invalid signature gives None."""

# --- enclave ------------------------------------------------------------------------------------

MAX_SEALED_BOXES: int
"""Maximum number of recipients of one sealed payload."""

@final
class SealedRecord:
    """The public fields of a sealed payload, and whether the keyring can open the payload."""

    key: bytes
    """SHA-512/256 of the ciphertext."""
    sender: bytes
    group: bytes
    recipients: list[bytes]
    """Public keys of the recipients. The first `members` keys form the group."""
    members: int
    is_legacy: bool
    """Whether the group is a legacy group, whose id follows from its members."""
    opens: bool
    agrees: bool
    """Whether the payload can be opened. A private transaction must also name the sender and group of this record."""
    gas_limit: int | None
    """Gas limit of the private transaction; None if the payload cannot be opened or is not a private transaction."""

@final
class EnclaveKeyring:
    """X25519 private keys that seal and open XSalsa20-Poly1305 boxes. An invalid public key opens no box."""

    def __new__(cls, secrets: Sequence[bytes], /) -> EnclaveKeyring: ...
    @property
    def public_keys(self) -> list[bytes]: ...
    def seal(
        self,
        payload: bytes,
        sender: bytes,
        recipients: Sequence[bytes],
        members: int,
        group: bytes,
        randomness: bytes,
        /,
    ) -> tuple[bytes, bytes]:
        """Seal a payload with 80 random bytes. Returns (key, record). Raises CallRefused for a foreign sender or
        invalid recipient.
        """

    def judge(self, records: Sequence[bytes], /) -> list[SealedRecord | None]:
        """Decode records of other enclaves and try to open them. Bytes that are not a record give None."""

    def open(self, record: bytes, /) -> bytes | None: ...
    def open_stored(self, store: Store, keys: Sequence[bytes], /) -> list[tuple[bytes, bytes, bytes] | None]:
        """Return (payload, group, sender) of records in the table `payloads`, all from one snapshot."""

    def box_for(self, own: bytes, other: bytes, nonce: bytes, text: bytes, /) -> bytes | None: ...
    def unbox(self, own: bytes, other: bytes, nonce: bytes, boxed: bytes, /) -> bytes | None: ...

def read_sealed(record: bytes, /) -> SealedRecord: ...
def enclave_group_id(members: Sequence[bytes], seed: bytes | None, /) -> bytes:
    """Return the id of a group (privacy.md 4.1-4.3)."""

def enclave_public_key(secret: bytes, /) -> bytes: ...
def is_sound_enclave_key(key: bytes, /) -> bool:
    """Whether a key has 32 bytes, is canonical and is not of low order."""

def lock_enclave_key(
    secret: bytes, password: bytes, salt: bytes, nonce: bytes, costs: tuple[int, int, int], /
) -> bytes:
    """Encrypt an enclave key with argon2id (memory in KiB, iterations, lanes) and XSalsa20-Poly1305."""

def unlock_enclave_key(
    locked: bytes, password: bytes, salt: bytes, nonce: bytes, costs: tuple[int, int, int], /
) -> bytes | None:
    """Decrypt an enclave key. Returns None for a wrong password. Raises DecodeError for excessive costs."""

# --- tries --------------------------------------------------------------------------------------

def ordered_root(items: Sequence[bytes], /) -> bytes:
    """Return the root of the trie rlp(index) -> item, for transactions, receipts or withdrawals."""

def trie_root(changes: Sequence[tuple[bytes, bytes | None]], secure: bool, /) -> bytes:
    """Return the root of a trie after these changes. A change with None or an empty value deletes the key. Secure tries
    hash their keys.
    """

def verify_proof(root: bytes, key: bytes, nodes: Sequence[bytes], /) -> bytes | None:
    """Return the value proved under keccak(key), or None if absence is proved. Raises DecodeError for a wrong proof."""

# --- ethash -------------------------------------------------------------------------------------

def ethash_seed(epoch: int, /) -> bytes: ...
def ethash_compute(seal_hash: bytes, nonce: int, number: int, /) -> tuple[bytes, bytes]:
    """Compute the mix hash and result of ethash by the light algorithm. The caches of two epochs stay in memory."""

def ethash_search(
    seal_hash: bytes, number: int, difficulty: int, start_nonce: int, attempts: int, threads: int, /
) -> tuple[int, bytes] | None:
    """Search for a nonce. Returns (nonce, mix hash), or None after `attempts` nonces."""

# --- transactions and bodies --------------------------------------------------------------------

@final
class Transaction:
    """A decoded transaction with its sender."""

    raw: bytes
    """EIP-2718 encoding in blocks, without the blob sidecar."""
    hash: bytes
    sender: bytes
    type: int
    chain_id: int | None
    """Chain id; None for legacy transactions without replay protection."""
    nonce: int
    gas_limit: int
    max_fee_per_gas: int
    """Maximum fee per gas. For legacy and EIP-2930 transactions, this is the gas price."""
    max_priority_fee_per_gas: int
    max_fee_per_blob_gas: int | None
    blob_hashes: list[bytes]
    to: bytes | None
    value: int
    input: bytes
    authorization_count: int
    is_low_s: bool
    cost: int
    """Maximum cost for the sender: value, gas and blobs."""
    @staticmethod
    def impersonated(raw: bytes, sender: bytes, /) -> Transaction:
        """Return a transaction that its sender has not signed. Only development networks execute it."""

    @staticmethod
    def dynamic_fee(
        secret: bytes | None,
        sender: bytes,
        chain_id: int,
        nonce: int,
        gas: int,
        to: bytes | None,
        value: int,
        input: bytes,
        max_fee: int,
        max_priority_fee: int,
        /,
    ) -> Transaction:
        """Return a dynamic-fee transaction of a development network. `secret` is the key of the sender. Without a
        secret the sender is impersonated: r of the signature is the sender and s is 1.
        """

    def intrinsic_gas(self, fork: str, /) -> int:
        """Return the minimum gas limit under a fork, including the floor of EIP-7623."""

    def admission_values(
        self, fork: str, /
    ) -> tuple[bytes, bytes, int, int | None, int, int, int, int, int, int, int, bool]:
        """Return the values for pool admission: hash, sender, type, chain id, nonce, gas limit, max fee, max tip, cost,
        size in a block, intrinsic gas under the fork, is_low_s. For types 0 and 1, max fee and max tip are the gas
        price.
        """

    def plain_admission_values(self, bounds: Bounds, /) -> tuple[bytes, bytes, int, int, int, int, int, int] | None:
        """Return hash, sender, nonce, gas limit, max fee, max tip, size in a block and cost of a plain transaction, or
        None for other transactions. This is the fast path of pool admission.
        """

    def json(self, /) -> bytes:
        """Return the JSON-RPC object of a pending transaction. Members about the block are null."""

@final
class Bounds:
    """Limits within which a transaction is plain. Transactions beyond these limits take the slow path
    (`pool/admission.py`).
    """

    def __new__(
        cls,
        *,
        fork: str,
        chain_id: int,
        last_type: int,
        max_gas: int,
        base_fee: int,
        min_fee: int,
        min_price: int,
        min_tip: int,
        max_total_fee: int | None,
        max_init_code: int | None,
    ) -> Bounds:
        """Set the limits. `min_fee` is the minimum fee per gas, `min_price` the minimum sum of base fee and tip,
        `max_total_fee` the maximum fee for all gas. Transactions of type 3 and above are never plain.
        """

def recover_bodies(bodies: Sequence[Body], /) -> None:
    """Compute transaction hashes and senders of bodies, all together. `Body.recover` reports invalid signatures."""

def journal_lines(transactions: Sequence[Transaction], arrived_ms: int, /) -> bytes:
    """Return the lines that the pool's journal stores for these transactions."""

def decode_transactions(raws: Sequence[bytes], /) -> list[Transaction | str]:
    """Decode, hash and recover many transactions on all cores. A malformed transaction gives an error text. The sidecar
    of a blob transaction is verified and dropped. The senders of the last 65,536 transactions are cached.
    """

def senders_recovered() -> int:
    """Return the number of sender recoveries since the start. Cached senders do not count."""

@final
class Decoder:
    """Runs `decode_transactions` on a native thread. Results keep the order of submission. Blob transactions have their
    own thread and their own order.
    """

    def __new__(cls) -> Decoder: ...
    fd: int
    """File descriptor that is readable when results are ready."""
    def submit(self, arrival: object, raws: Sequence[bytes], senders: bytes | None = None, /) -> bool:
        """Submit transactions. Returns True if the decoder waits for more transactions, or for `start`, before it runs.

        `senders` may have the expected sender of each transaction, 20 bytes each. A wrong one changes no result.
        """

    def start(self) -> None:
        """Process all submissions that wait."""

    def collect(self, max: int, /) -> tuple[list[Any], list[Transaction | str]]:
        """Return (arrivals, transactions) of at most `max` finished submissions. Never blocks. If more results are
        ready, `fd` stays readable.
        """

@final
class Withdrawal:
    index: int
    validator: int
    address: bytes
    amount_gwei: int
    def __new__(cls, index: int, validator: int, address: bytes, amount_gwei: int) -> Withdrawal: ...

@final
class Body:
    """Transactions, ommers and withdrawals of one block."""

    @staticmethod
    def of(transactions: Sequence[bytes], ommers: Sequence[bytes], withdrawals: Sequence[Withdrawal] | None) -> Body:
        """Create a body from EIP-2718 transactions and the header RLP of each ommer."""

    transaction_count: int
    transactions_root: bytes
    ommers: list[bytes]
    """Header RLP of each ommer."""
    ommers_hash: bytes
    withdrawals: list[Withdrawal] | None
    withdrawals_root: bytes | None
    transactions: list[Transaction]
    """The transactions. The first access recovers their senders."""
    blob_gas: int
    def hashes_and_senders(self) -> tuple[list[bytes], list[bytes]]:
        """Return (hash of each transaction, distinct senders). Recovers the senders if needed."""

    def recover(self, /) -> None:
        """Recover all senders in parallel. Raises InvalidBody if a signature has no sender."""

    def encode_block(self, header: bytes, /) -> bytes: ...

def decode_block(block: bytes, start: int = 0, end: int | None = None, /) -> tuple[bytes, Body]:
    """Return (header RLP, body) of one RLP block. Raises DecodeError for other bytes, including trailing bytes.

    `start` and `end` delimit the block within `block`; these bytes are not copied.
    """

# --- environment --------------------------------------------------------------------------------

@final
class ChainRules:
    """EVM settings of a chain."""

    def __new__(
        cls,
        *,
        chain_id: int,
        contract_size_limit: int | None = None,
        deposit_contract: bytes | None = None,
        withdrawal_request_contract: bytes | None = None,
        consolidation_request_contract: bytes | None = None,
        is_relaxed: bool = False,
        signatures: Sequence[tuple[bytes, bytes]] = ...,
    ) -> ChainRules:
        """Create the rules. `is_relaxed` is for development chains: senders may have code, and no cap limits a
        transaction's gas. For each of `signatures`, ecrecover returns the given address, even if the signature is
        invalid.
        """

@final
class BlockEnv:
    """Environment of a block.

    `fork` is one of frontier, homestead, tangerine, spurious, byzantium, constantinople, petersburg, istanbul, berlin,
    london, paris, shanghai, cancun, prague, osaka. `beneficiary` earns the fees (the Clique signer, not the header's
    coinbase). `block_hashes` are the concatenated hashes of blocks number-1, number-2, ... (at most 256). If None,
    these hashes are read from the canonical chain.
    """

    def __new__(
        cls,
        *,
        rules: ChainRules,
        fork: str,
        number: int,
        timestamp: int,
        beneficiary: bytes,
        gas_limit: int,
        difficulty: int,
        mix_hash: bytes,
        base_fee: int | None,
        excess_blob_gas: int | None = None,
        max_blobs: int | None = None,
        blob_fee_fraction: int | None = None,
        parent_beacon_root: bytes | None = None,
        parent_hash: bytes,
        block_hashes: bytes | None = None,
        dao_fork: bool = False,
    ) -> BlockEnv: ...

# --- state and execution ------------------------------------------------------------------------

FORK_MARKER_SLOT: bytes
"""Storage slot that marks the storage of an account as local on a fork. No contract can reach this slot."""

@final
class ForkState:
    """The state of the forked chain, from which a development node reads values that are not in its local state."""

    def __new__(cls, number: int, fetch: Callable[[bytes | None, bytes | None, int | None], bool], /) -> ForkState:
        """Create an empty state. `fetch(address, slot, number)` adds a missing account, slot or block hash and returns
        true. A read raises `NotFetched` if `fetch` returns false, and `SourceFailed` if `fetch` raises.
        """

    def attach(self, store: Store, /) -> None:
        """Let a database read missing keys from this state."""

    def add_account(self, address: bytes, account: tuple[int, int, bytes] | None, /) -> None:
        """Add an account: nonce, balance and code hash, or None if the account does not exist."""

    def add_slot(self, address: bytes, slot: bytes, value: bytes, /) -> None: ...
    def add_code(self, code: bytes, /) -> bytes:
        """Add contract code and return its hash."""

    def add_block_hash(self, number: int, hash: bytes, /) -> None: ...
    def knows(self, address: bytes | None, slot: bytes | None = None, number: int | None = None, /) -> bool: ...
    def knows_code(self, hash: bytes, /) -> bool: ...
    def collect(self, work: Callable[[], object], /) -> list[tuple[bytes | None, bytes | None, int | None]]:
        """Run `work` with zero in place of each missing value. Returns the missing keys; result and errors of `work`
        are ignored.
        """

@final
class State:
    """The state with one root: of the head, an earlier block, a side chain, or an uncommitted execution."""

    root: bytes
    def merged(self) -> State:
        """Return the same state with fewer layers of uncommitted blocks, so that it is read faster."""

    def account(self, address: bytes, /) -> tuple[int, int, bytes, bytes] | None:
        """Return (nonce, balance, code hash, storage root) of an account."""

    def balance(self, address: bytes, /) -> int: ...
    def nonce(self, address: bytes, /) -> int: ...
    def code(self, address: bytes, /) -> bytes: ...
    def storage(self, address: bytes, slot: bytes, /) -> bytes:
        """Return the value of a slot as 32 bytes."""

    def proof(self, address: bytes, slots: Sequence[bytes], /) -> tuple[list[bytes], list[tuple[bytes, list[bytes]]]]:
        """Return the account proof, then (value as 32 bytes, proof) of each slot. A proof is a list of nodes from the
        root on.
        """

    def accounts(
        self, start: bytes, limit: int, /
    ) -> tuple[list[tuple[bytes, bytes | None, int, int, bytes, bytes]], bytes | None]:
        """Return accounts in order of their hashed keys, from a hash on: ((hash, address, nonce, balance, code hash,
        storage root) ..., next hash).
        """

    def storage_range(
        self, address: bytes, start: bytes, limit: int, /
    ) -> tuple[list[tuple[bytes, bytes | None, bytes]], bytes | None]:
        """Return slots in order of their hashed keys, from a hash on: ((hash, slot, value) ..., next hash)."""

@final
class Execution:
    """Result of executing a block. The result can be committed, and further blocks can be executed on its state."""

    state_root: bytes
    receipts_root: bytes
    logs_bloom: bytes
    gas_used: int
    blob_gas_used: int
    requests: list[bytes] | None
    """EIP-7685 requests (type byte and data), from Prague on."""
    requests_hash: bytes | None
    state: State
    """State after the block. Another block may be executed on this state before this block is committed."""
    def receipt_statuses(self) -> list[tuple[bool, int, bytes]]:
        """Return (succeeded, gas used, output of a reverted transaction) for each transaction."""

@final
class TakeResult:
    """Result of `OpenBlock.take`. Each field names candidates by their position."""

    included: list[int]
    """Candidates included in the block, in this order."""
    skipped: list[tuple[int, str]]
    """(position, reason) of candidates that are invalid on this state."""
    early: list[int]
    """Candidates that are too early, because lower nonces of their sender are missing."""
    unfit: list[int]
    """Candidates that need more gas than the block has left."""
    unfinished: int | None
    """The candidate that was running at the deadline, or None. This candidate has no effect on the block."""
    seen: int
    """Number of candidates that were processed before gas or time ran out."""
    is_full: bool
    """Whether less gas is left than the smallest transaction needs."""

@final
class OpenBlock:
    """Incremental block builder: runs transactions as they arrive, and can be sealed once, at any moment. Only one
    thread at a time may use a block. After a database failure the block is unusable.
    """

    def __new__(cls, state: State, env: BlockEnv, keep_revert_data: bool, /) -> OpenBlock: ...
    def take(self, candidates: Sequence[Transaction], deadline_s: float, /) -> TakeResult:
        """Run candidates in the given order until gas or time runs out."""

    def settle(self) -> None:
        """Hash all changes so far, so that `seal` takes less time."""

    def seal(
        self, withdrawals: Sequence[Withdrawal] | None, rewards: Sequence[tuple[bytes, int]], /
    ) -> tuple[Body, Execution]:
        """Complete the block."""

def build_block(
    state: State,
    env: BlockEnv,
    candidates: Sequence[Transaction],
    keep_revert_data: bool,
    withdrawals: Sequence[Withdrawal] | None,
    rewards: Sequence[tuple[bytes, int]],
    deadline_s: float,
    /,
) -> tuple[TakeResult, Body, Execution]:
    """Build a whole block at once. The block equals the block of an `OpenBlock`. For a few transactions, this call is
    faster than an `OpenBlock`.
    """

def execute(
    state: State,
    env: BlockEnv,
    body: Body,
    rewards: Sequence[tuple[bytes, int]],
    keep_revert_data: bool,
    limit_s: float | None = None,
    /,
) -> Execution:
    """Execute a block on its parent state. InvalidBody names the invalid transaction, or says "took too long"."""

def genesis_state(
    store: Store, alloc: Sequence[tuple[bytes, int, int, bytes, Sequence[tuple[bytes, bytes]]]], /
) -> Execution:
    """Make the genesis state from (address, nonce, balance, code, ((slot, value) ...)) of each account. The state is
    committed like the state of any block.
    """

def append_empty(
    store: Store,
    state: State,
    env: BlockEnv,
    body: Body,
    rewards: Sequence[tuple[bytes, int]],
    first: bytes,
    count: int,
    step: int,
    randomness: int | None,
    total_difficulty: int,
    /,
) -> bytes:
    """Execute up to `count` empty blocks on the head and commit them in one transaction. Returns hash and state root of
    each block. The run ends before a block whose requests (EIP-7685) differ from those of `first`.

    `env` and `first` belong to the first block; `first` is its header, complete except for the state root. Later blocks
    follow after `step` seconds. Their mix hash is the hash of the parent's hash and `randomness`; with None, all blocks
    have the mix hash of the first block. `total_difficulty` is the total difficulty of the head.
    """

def edit_state(store: Store, state: State, changes: Sequence[AccountOverride], number: int, /) -> State:
    """Write a copy of a state with these changes as the state of block `number`. Only development networks use this
    function.
    """

# --- calls --------------------------------------------------------------------------------------

@final
class CallRequest:
    """A decoded call object. If the fees are None, the price is zero and fees are not checked."""

    def __new__(
        cls,
        *,
        sender: bytes,
        to: bytes | None,
        gas: int,
        value: int | None = None,
        input: bytes | None = None,
        nonce: int | None = None,
        gas_price: int | None = None,
        max_fee_per_gas: int | None = None,
        max_priority_fee_per_gas: int | None = None,
        max_fee_per_blob_gas: int | None = None,
        blob_hashes: Sequence[bytes] = ...,
        access_list: Sequence[tuple[bytes, Sequence[bytes]]] = ...,
        authorizations: Sequence[tuple[int, bytes, int, int, int, int]] = ...,
        check_balance: bool = True,
        check_base_fee: bool = True,
    ) -> CallRequest: ...

@final
class AccountOverride:
    def __new__(
        cls,
        *,
        address: bytes,
        balance: int | None = None,
        nonce: int | None = None,
        code: bytes | None = None,
        state: Sequence[tuple[bytes, bytes]] | None = None,
        state_diff: Sequence[tuple[bytes, bytes]] | None = None,
        precompile_target: bytes | None = None,
    ) -> AccountOverride:
        """Create an override. `precompile_target` is the new address of the precompiled contract."""

@final
class Cancellation:
    """Cancels the work of another thread."""

    def __new__(cls) -> Cancellation: ...
    def cancel(self) -> None: ...
    def __enter__(self) -> None:
        """Let `cancel` stop calls, searches and simulations of this thread until `__exit__`. They then end with a
        timeout.
        """

    def __exit__(self, kind: object, error: object, trace: object, /) -> None: ...

@final
class CallOutcome:
    kind: str
    """Result of the call: returned, reverted, halted (see `reason`), invalid (breaks a transaction rule) or timeout."""
    output: bytes
    gas_used: int
    reason: str
    """For a halted call, the cause ("out of gas", "invalid opcode", ...). For an invalid call, a code, a colon and a
    text; the codes are intrinsic-gas, balance, fee-below-base, tip-above-fee, init-code, nonce, other.
    """

@final
class Sandbox:
    """Runs calls one after the other on a state and keeps their effects. A sandbox has no blocks, roots and fees."""

    def __new__(cls, state: State, env: BlockEnv, /) -> Sandbox: ...
    def run(self, request: CallRequest, keep_effects: bool, deadline_s: float, /) -> CallOutcome:
        """Run a call. With `keep_effects`, later calls see the changes of this call."""

    def save(self) -> int:
        """Save the current state. Returns the number of the saved state for `revert`."""

    def revert(self, number: int, /) -> bool:
        """Restore a saved state, and delete this and all later saved states. Returns False if the number is unknown."""

    def account(self, address: bytes, /) -> tuple[int, int, bytes]:
        """Return (nonce, balance, code) of an account."""

    def storage(self, address: bytes, slot: bytes, /) -> bytes:
        """Return the value of a slot as 32 bytes."""

def call(
    state: State, env: BlockEnv, request: CallRequest, overrides: Sequence[AccountOverride], deadline_s: float, /
) -> CallOutcome:
    """Run a call without lasting effects. Checks of nonce, balance for fees and EIP-3607 are off."""

def console_reads() -> int:
    """Return a number that changes whenever an execution in this process calls the console of Hardhat and Foundry."""

def call_each(
    state: State, env: BlockEnv, request: CallRequest, inputs: Sequence[bytes], limit_s: float, /
) -> list[CallOutcome]:
    """Run a call once for each input. Each run is like `call` and has the same time limit."""

@final
class CallCostCache:
    """Decides which contract functions may run on the event loop. These are functions that returned quickly before, and
    unknown functions while the time budget for failed attempts lasts.
    """

    def __new__(cls) -> CallCostCache: ...
    def is_light(self, to: bytes, input: bytes, /) -> bool: ...
    def is_heavy(self, to: bytes, input: bytes, /) -> bool: ...
    def may_try(self, to: bytes, input: bytes, /) -> bool: ...
    def note(self, to: bytes, input: bytes, is_heavy: bool, /) -> None:
        """Record whether a finished call was slow."""

    def wasted(self, to: bytes, input: bytes, took_s: float, /) -> None:
        """Record a failed attempt on the event loop. Its duration reduces the time budget."""

@final
class LatestBlock:
    """Fast path for requests about the latest block. The calls hold the GIL, because a reply takes microseconds."""

    def __new__(cls, number: int, state: State, /) -> LatestBlock: ...
    def set(self, number: int, state: State, /) -> None:
        """Set a new latest block. After that, `set_call_settings` must be called before the next call."""

    has_call_settings: bool
    def set_call_settings(self, env: BlockEnv, gas: int, max_gas: int, limit_s: float, costs: CallCostCache, /) -> None:
        """Set environment, default gas, maximum gas and time limit of calls. No call runs before `set_call_settings`."""

    def call(self, call: dict[str, object], /) -> bytes | None:
        """Return the output of a plain eth_call, given as a JSON object, or None if the slow path must run the call."""

    def reading(self, question: str, /) -> LatestRead:
        """Return a reader of `number`, `balance`, `nonce` or `call`. The reader decodes request parameters."""

@final
class LatestRead:
    """One readable value of the latest block."""

    def counted(self, tally: object, /) -> LatestRead:
        """Return the same reader with a counter. Each reply decrements `tally.untimed`. At 0 the slow path replies."""

def estimate_gas(
    state: State,
    env: BlockEnv,
    request: CallRequest,
    overrides: Sequence[AccountOverride],
    cap: int,
    deadline_s: float,
    /,
) -> tuple[int, CallOutcome]:
    """Return sufficient gas (json-rpc.md 5.5) and the outcome of the call with the maximum gas. If this call fails, the
    gas is 0.
    """

def create_access_list(
    state: State, env: BlockEnv, request: CallRequest, overrides: Sequence[AccountOverride], deadline_s: float, /
) -> tuple[list[tuple[bytes, list[bytes]]], CallOutcome]: ...

# --- tracing ------------------------------------------------------------------------------------

@final
class LogStream:
    """A log search whose JSON array is produced in pieces."""

    def __new__(
        cls,
        store: Store,
        first: int,
        last: int,
        addresses: Sequence[bytes],
        topics: Sequence[Sequence[bytes] | None],
        max_results: int,
        deadline_s: float,
        /,
    ) -> LogStream: ...
    def next(self) -> bytes | None:
        """Return the next piece, or None after the last. Works without the GIL.

        The first piece fails if more than `max_results` logs match. Later pieces fail if the chain was reorganised.
        """

    def close(self) -> None:
        """Release the search."""

@final
class TraceStream:
    """JSON text that a thread writes. The thread stops when the stream is closed or dropped."""

    def next(self) -> bytes | None:
        """Return the next chunk, or None after the last. Waits without the GIL. Raises the error of the thread."""

    def close(self) -> None:
        """Stop the thread that writes the text."""

@final
class TracedBlock:
    """A block to execute again. The first of `rewards` is the block's reward; the rewards of its ommers follow."""

    def __new__(
        cls, *, parent: State, env: BlockEnv, body: Body, hash: bytes, rewards: Sequence[tuple[bytes, int]] = ...
    ) -> TracedBlock: ...

@final
class TraceKind:
    """Kind of a trace."""

    @staticmethod
    def struct_logs(*, storage: bool, memory: bool, stack: bool) -> TraceKind: ...
    @staticmethod
    def standard_logs(
        *,
        storage: bool,
        memory: bool,
        stack: bool,
        return_data: bool,
        limit: int | None,
        opcodes: Sequence[str] | None,
        only: int | None = None,
    ) -> TraceKind:
        """Struct logs in the form of geth. With `only`, the trace has only the row at this position, with all slots
        that the account has accessed so far.
        """
    @staticmethod
    def calls(*, only_top_call: bool = False, with_log: bool = False, with_pc: bool = False) -> TraceKind:
        """The call tracer. With `with_pc`, a failed call includes the program counter of the failure."""
    @staticmethod
    def prestate(*, diff: bool = False, code: bool = True, storage: bool = True, empty: bool = False) -> TraceKind: ...
    @staticmethod
    def selectors() -> TraceKind: ...
    @staticmethod
    def flat_calls(*, precompiles: bool = False, trace_errors: bool = False) -> TraceKind: ...
    @staticmethod
    def replay(*, trace: bool, vm_trace: bool, state_diff: bool) -> TraceKind: ...
    @staticmethod
    def validation(*, ignored_opcodes: bytes | None = None, with_log: bool = False) -> TraceKind:
        """The call tracer with storage and opcode accesses, for ERC-7562. If `ignored_opcodes` is None, the opcodes
        that ERC-7562 always permits are omitted.
        """

def trace_transaction(block: TracedBlock, index: int, kind: TraceKind, deadline_s: float, /) -> TraceStream: ...
def trace_block(block: TracedBlock, kind: TraceKind, wrapped: bool, deadline_s: float, /) -> TraceStream:
    """Return a list with an entry for each transaction. With `wrapped`, an entry is `{txHash, result}`."""

def trace_call(
    state: State,
    env: BlockEnv,
    request: CallRequest,
    overrides: Sequence[AccountOverride],
    kind: TraceKind,
    deadline_s: float,
    /,
) -> TraceStream: ...
def trace_calls(
    state: State, env: BlockEnv, calls: Sequence[tuple[CallRequest, TraceKind]], deadline_s: float, /
) -> TraceStream:
    """Return a list of traces. Each call runs on the state after the previous call."""

def trace_signed(state: State, env: BlockEnv, body: Body, kind: TraceKind, deadline_s: float, /) -> TraceStream:
    """Trace a signed transaction on this state, with all transaction checks."""

def trace_flat(
    blocks: Sequence[TracedBlock],
    index: int | None,
    senders: Sequence[bytes],
    recipients: Sequence[bytes],
    skip: int,
    max: int,
    address: Sequence[int] | None,
    deadline_s: float,
    /,
) -> TraceStream:
    """Return flat traces of blocks as one list, with rewards. With `index`, trace one transaction only."""

# --- simulated blocks ---------------------------------------------------------------------------

@final
class SimulatedBlock:
    """An executed block that is not stored."""

    execution: Execution
    body: Body
    """The transactions, unsigned: v, r and s are zero."""
    def calls(self) -> list[tuple[str, bytes, int, int, str]]:
        """Return (returned, reverted or halted; output; gas used; gas used before refunds; halt reason) of
        each call.
        """

    def render(
        self, block_hash: bytes, number: int, timestamp: int, base_fee: int | None, /
    ) -> list[tuple[bytes, bytes]]:
        """Return (array of logs, transaction object) of each call, as JSON text."""

def simulate_block(
    state: State,
    env: BlockEnv,
    calls: Sequence[tuple[CallRequest, int | None, int | None, bool]],
    *,
    overrides: Sequence[AccountOverride],
    withdrawals: Sequence[Withdrawal] | None,
    rewards: Sequence[tuple[bytes, int]],
    validation: bool,
    transfers: bool,
    gas_left: int,
    deadline_s: float,
) -> SimulatedBlock:
    """Run calls (request, gas, nonce, whether a gas price was given) as a block. CallRefused names the broken rule by
    the codes of `CallOutcome.reason` or by nonce-low, nonce-high or block-gas.
    """

def is_precompile(env: BlockEnv, address: bytes, /) -> bool: ...

# --- store --------------------------------------------------------------------------------------

@final
class NewBlock:
    """A block to be committed."""

    def __new__(
        cls, *, hash: bytes, number: int, header: bytes, body: Body, execution: Execution, total_difficulty: int
    ) -> NewBlock: ...
    @staticmethod
    def received(
        *,
        hash: bytes,
        number: int,
        header: bytes,
        body: Body,
        receipts: Receipts,
        total_difficulty: int,
        blob_price: int,
    ) -> NewBlock:
        """Make a block that is not executed: its receipts come from another node, and its state is not written."""

    def receipt_json(self, index: int, with_revert_reason: bool, /) -> bytes | None:
        """Return the JSON-RPC object of a receipt."""

@final
class Receipts:
    """The receipts of one block, received from another node."""

    def __len__(self) -> int: ...
    @property
    def root(self) -> bytes:
        """The receipts root, computed at each call."""

@final
class AccountBatch:
    """Verified accounts of another node's state."""

    def __len__(self) -> int: ...
    @property
    def next(self) -> bytes | None:
        """The key after the last account. None if the state has no further accounts."""

    @property
    def storages(self) -> list[tuple[bytes, bytes]]:
        """Key and storage root of each account with storage."""

    @property
    def codes(self) -> list[bytes]:
        """The code hashes of the accounts, each once."""

@final
class StateDifference:
    """A search for the differences between the downloaded accounts and the state of another node."""

    def __new__(cls, root: bytes, /) -> StateDifference: ...
    @property
    def is_complete(self) -> bool:
        """Whether no more nodes are needed."""

    @property
    def changes(self) -> int:
        """Number of differences that `take` returns."""

    def next_paths(self, max: int, /) -> list[bytes]:
        """Return the paths of the next trie nodes to request. Repeats paths of an unanswered request."""

    def take(self) -> tuple[AccountBatch, list[bytes]]:
        """Return the accounts to write and the keys to remove that were found since the last call."""

@final
class StateDownload:
    """Writes a state of other nodes in verified parts. A response that is not valid raises `DecodeError`."""

    def __new__(cls, store: Store, /) -> StateDownload: ...
    @staticmethod
    def verify_accounts(response: bytes, root: bytes, origin: bytes, /) -> AccountBatch | None:
        """Verify an AccountRange response. Returns None if the peer does not have the state."""

    def put_storages(self, response: bytes, roots: list[bytes], origin: bytes, /) -> int | None:
        """Verify and write a StorageRanges response. `origin` is the first key of the first root. Returns the number of
        slots; None if the peer does not have the state.
        """

    def missing_storages(self, roots: list[bytes], /) -> list[tuple[bytes, bytes]]:
        """Return the roots whose storage is not whole, each with its next key."""

    def missing_codes(self, hashes: list[bytes], /) -> list[bytes]:
        """Return the hashes whose code is not stored."""

    def put_codes(self, response: bytes, hashes: list[bytes], /) -> int:
        """Verify and write a ByteCodes response to a request for `hashes`. Returns the number of codes."""

    def put_accounts(self, batch: AccountBatch, removed: list[bytes], named: list[tuple[str, bytes]], /) -> None:
        """Write accounts and named values, and remove accounts. Storages and codes must be written before."""

    @property
    def root(self) -> bytes:
        """The state root of the accounts that are written."""

    def receive_nodes(self, difference: StateDifference, response: bytes, /) -> int:
        """Verify the nodes of a TrieNodes response and continue the search. Returns the number of nodes."""

    def finish(self, root: bytes, hash: bytes, number: int, named: list[tuple[str, bytes]], /) -> None:
        """Make the accounts the stored state of a canonical block, make this block the head, and write named values.
        Deletes values that begin with "snap ", and the canonical blocks above the head.

        Raises `StorageError` if the accounts have another root.
        """

def bft_block_hash(header: bytes, is_qbft: bool, /) -> bytes | None:
    """Return the block hash of an encoded IBFT 2.0 or QBFT header; None if the slow path (`BftEngine.hashed`) must
    decide, for example because the header has a vote.
    """

def header_fields(header: bytes, /) -> tuple[bytes | int, ...] | None:
    """Return the fields of an encoded header in order; None if the slow path (`Header.decode`) must decide."""

@final
class BlockHistory:
    """Blocks whose headers are stored before their bodies and receipts. Reads of a missing body or of missing receipts
    raise `NotDownloaded`.
    """

    def __new__(cls, store: Store, /) -> BlockHistory: ...
    @property
    def start(self) -> int | None:
        """Number of the lowest block from which on all blocks have bodies and receipts; None if no block lacks them.
        The genesis block always has both.
        """

    def put_headers(
        self, headers: list[tuple[bytes, int, bytes, int, int]], named: list[tuple[str, bytes]], /
    ) -> None:
        """Write consecutive canonical headers (hash, number, RLP, total difficulty, price of blob gas) and named values.
        Canonical blocks above the last header leave the chain. The head does not move.
        """

    def replace_header(self, hash: bytes, header: bytes, /) -> None:
        """Replace the RLP of a stored header by another RLP with the same block hash. The hash does not cover the
        seals.
        """

    def begin(self, head: int, /) -> None:
        """Declare that the blocks up to the number `head` have no bodies and receipts."""

    def put(self, blocks: list[tuple[bytes, Body, Receipts]], /) -> None:
        """Write verified bodies and receipts by block hash: the blocks directly below `start`, in descending order.

        Raises `StorageError` for another block.
        """

@final
class Pruning:
    """A pruning round. Call `forget`, `mark` and `sweep` in this order, each repeatedly with up to `max` entries until
    it returns False. A round may be abandoned: the database is consistent after every step. Blocks may be written
    between steps.
    """

    def forget(self, max: int, /) -> bool:
        """Remove old states from the list of stored states. The call writes to the database."""

    def mark(self, max: int, /) -> bool:
        """Mark the trie nodes of all remaining states, without writing to the database."""

    def sweep(self, max: int, /) -> bool:
        """Delete unmarked nodes. Writes to the database."""

    @property
    def forgotten(self) -> int: ...
    @property
    def marked(self) -> int: ...
    @property
    def freed(self) -> int: ...

@final
class Store:
    """An LMDB environment: one process, many readers, one writer."""

    @staticmethod
    def open(path: str, *, create: bool = True, read_only: bool = False, durable: bool = True) -> Store:
        """Open the database in directory `path`. A StorageError says what is wrong and what to do."""

    @property
    def is_read_only(self) -> bool: ...
    def close(self) -> None: ...
    def sync(self) -> None:
        """Flush the database to disk. Only a database without durable commits needs this call."""

    def follow(self) -> None:
        """Follow the commits of another process. Only a read-only database needs this call."""

    # methods that write
    def commit(
        self,
        blocks: Sequence[NewBlock],
        removed: Sequence[bytes],
        added: Sequence[bytes],
        named: Sequence[tuple[str, bytes]] = ...,
        /,
    ) -> None:
        """Write blocks and named values and change the canonical chain, all in one transaction. `removed` are hashes to
        remove from the canonical chain, old head first. `added` are hashes to add in ascending order; the last hash
        becomes the head. Added blocks must be stored already or be among `blocks`. If `removed` and `added` are empty,
        only side blocks are written.
        """

    def rewind(self, hash: bytes, state_root: bytes, /) -> None:
        """Make a committed block the head again, with this state. The cost does not depend on the number of removed
        blocks: their rows stay until new blocks replace them.
        """

    def write_rows(self, changes: Sequence[tuple[str, bytes, bytes | None]], /) -> None:
        """Write rows (table, key, value) of key-value tables in one transaction. A value of None deletes the row. The
        tables are in native/storage/src/store/key_value_tables.rs."""

    def clear_rows(self, tables: Sequence[str], /) -> None: ...
    def row(self, table: str, key: bytes, /) -> bytes | None: ...
    def rows(self, table: str, prefix: bytes, after: bytes, limit: int, /) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` rows whose key starts with `prefix` and is above `after`, in order of keys."""

    def last_row(self, table: str, prefix: bytes, /) -> tuple[bytes, bytes] | None: ...
    def put_meta(self, key: str, value: bytes, /) -> None:
        """Store a small named value (genesis text, votes, local transactions)."""

    def meta(self, key: str, /) -> bytes | None: ...

    # methods that read the chain
    def head(self) -> tuple[bytes, int] | None:
        """Return (hash, number) of the head; None in an empty database."""

    def canonical_hash(self, number: int, /) -> bytes | None: ...
    def header(self, hash: bytes, /) -> bytes | None: ...
    def total_difficulty(self, hash: bytes, /) -> int | None: ...
    def number_of(self, hash: bytes, /) -> int | None: ...
    def body(self, hash: bytes, /) -> Body | None:
        """Return a body with its stored senders."""

    def block(self, hash: bytes, /) -> bytes | None:
        """Return the RLP of the block."""

    def transaction_position(self, hash: bytes, /) -> tuple[bytes, int, int] | None:
        """Return (block hash, block number, index) of a transaction on the canonical chain."""

    def raw_transaction_at(self, block: bytes, index: int, /) -> bytes | None:
        """Return the EIP-2718 encoding of one transaction of a block."""

    def counts(self, block: bytes, /) -> tuple[int, int] | None:
        """Return (number of transactions, number of ommers) of a block."""

    def raw_receipts(self, hash: bytes, /) -> list[bytes] | None:
        """Return the EIP-2718 receipts of a block."""

    def state(self, root: bytes, /) -> State:
        """Return the state of a root. Raises MissingState if the root is unknown."""

    def latest(self) -> State:
        """Return the state of the head."""

    # methods that render JSON-RPC objects as JSON text
    def block_json(self, hash: bytes, full: bool, with_total_difficulty: bool, /) -> bytes | None: ...
    def transaction_json(self, hash: bytes, /) -> bytes | None: ...
    def transaction_at_json(self, block: bytes, index: int, /) -> bytes | None: ...
    def receipt_json(self, hash: bytes, with_revert_reason: bool, max_bytes: int | None = None, /) -> bytes | None:
        """Return a receipt object. Raises StorageError if its database record exceeds `max_bytes`."""

    def receipt_at_json(self, block: bytes, index: int, with_revert_reason: bool, /) -> bytes | None: ...
    def block_receipts_json(self, block: bytes, with_revert_reason: bool, /) -> bytes | None: ...
    def logs_json(
        self,
        first: int,
        last: int,
        addresses: Sequence[bytes],
        topics: Sequence[Sequence[bytes] | None],
        max_results: int,
        max_bytes: int,
        deadline_s: float,
        /,
    ) -> bytes:
        """Return the logs of canonical blocks first..last. A StorageError names the limit that was exceeded."""

    def block_logs_json(
        self, block: bytes, addresses: Sequence[bytes], topics: Sequence[Sequence[bytes] | None], removed: bool, /
    ) -> bytes | None: ...

    # methods for maintenance
    def nodes_written(self) -> int:
        """Return the number of trie nodes written since the database was created."""

    def state_cached(self) -> int:
        """Return the estimated memory of cached nodes of the latest state, in bytes."""

    def state_cache(self) -> int:
        """Return the limit of `state_cached`, in bytes."""

    def set_state_cache(self, bytes: int, /) -> None:
        """Limit the memory of cached nodes of the latest state."""

    def write_changes(self) -> None:
        """From now on, write trie branches as deltas where a delta is shorter."""

    def begin_pruning(self, oldest: int, /) -> Pruning:
        """Begin a round that deletes the states of all blocks below this number, except the genesis state."""

    def retain_checked(self) -> None:
        """Delete all rows that `check` does not cover: side blocks, states other than those of the genesis block and
        the head, private data, values of the node. Call `check` first; this method is for databases of other nodes. A
        pruning round then deletes the trie nodes of the other states. Raises StorageError if a hash in the genesis
        state is wrong.
        """

    # responses of snap/1, encoded in Rust. They end at `max_bytes` or after `deadline_s`, and are empty if the state of
    # `root` is not stored
    def account_range(
        self, request_id: int, root: bytes, origin: bytes, limit: bytes, max_bytes: int, deadline_s: float, /
    ) -> bytes: ...
    def storage_ranges(
        self,
        request_id: int,
        root: bytes,
        accounts: Sequence[bytes],
        origin: bytes,
        limit: bytes,
        max_bytes: int,
        deadline_s: float,
        /,
    ) -> bytes: ...
    def byte_codes(self, request_id: int, hashes: Sequence[bytes], max_bytes: int, deadline_s: float, /) -> bytes: ...
    def trie_nodes(
        self, request_id: int, root: bytes, paths: Sequence[Sequence[bytes]], max_bytes: int, deadline_s: float, /
    ) -> bytes:
        """Return trie nodes as a snap/1 response. Raises DecodeError if a path or an account hash is malformed."""

    def copy_to(self, descriptor: int, /) -> None:
        """Copy the database without free pages to an open file or pipe."""

    def usage(self) -> list[tuple[str, int, int]]:
        """Return (table, entries, bytes) of each table."""

    def check(self, limit: int, watch: Callable[[int, int], None] | None = None, /) -> list[str]:
        """Check chain and head state, and recompute all hashes. Returns up to `limit` findings. `watch` is called about
        twenty times a second with (checked entries, all entries). If `watch` raises, the check ends.
        """

# --- GraphQL ------------------------------------------------------------------------------------

@final
class GraphqlEngine:
    """Validates requests, caches their plans, and runs them on the database."""

    def __new__(
        cls,
        schema: str,
        *,
        chain_id: int,
        protocol_version: int,
        shows_hex: bool,
        max_tokens: int,
        max_depth: int,
        max_fields: int,
        max_cost: int,
        max_bytes: int,
        max_blocks: int,
        max_calls: int,
        max_logs_range: int,
        max_logs: int,
    ) -> GraphqlEngine:
        """Create the engine. Raises DecodeError if the schema is invalid or has a field without a resolver."""

    def read(self, body: bytes, /) -> GraphqlQuery | bytes:
        """Parse a JSON request. If the request is invalid, returns the error response as bytes."""

    def read_parts(self, document: str, operation: str | None, variables: str | None, /) -> GraphqlQuery | bytes:
        """Parse a request from its parts. `variables` is JSON text."""

@final
class GraphqlQuery:
    """A validated request. Only the content of the chain can still cause errors."""

    is_mutation: bool
    is_heavy: bool
    """Whether an earlier request of this shape was too expensive for the event loop."""
    needs_gas_price: bool
    needs_priority_fee: bool
    needs_pool: bool
    needs_next_base_fee: bool
    transactions: list[bytes]
    """Hashes of transactions that may be in the pool."""
    def run(
        self,
        store: Store,
        head_hash: bytes,
        head_number: int,
        at_once: bool,
        deadline_s: float,
        *,
        gas_price: int | None = None,
        priority_fee: int | None = None,
        next_base_fee: int | None = None,
        syncing: tuple[int, int, int] | None = None,
        pool: Sequence[Transaction] = ...,
        named: Sequence[Transaction] = ...,
        oldest_state: int = 0,
    ) -> tuple[int, bytes | GraphqlText] | GraphqlRound | None:
        """Run the query. Returns (status, body), or a round with tasks for the node. With `at_once`, returns None if
        the query needs too much work for the event loop.
        """

@final
class GraphqlRound:
    """A request that waits until the node has run tasks, with the snapshot on which the request continues."""

    asks: list[GraphqlAsk]
    def resume(self, replies: Sequence[GraphqlReply], /) -> tuple[int, bytes | GraphqlText]:
        """Continue the request with one reply per task. Returns (status, body)."""

@final
class GraphqlText:
    """Text of a long response, sent without a copy."""

    def __len__(self) -> int: ...
    def view(self) -> memoryview:
        """Return the bytes. The view keeps the text alive."""

@final
class GraphqlAsk:
    """A task for the node."""

    kind: str
    """Kind of the task: call, estimate or send."""
    block: bytes | None
    """Hash of the block whose state the task reads; None for the pending block."""
    sender: bytes | None
    to: bytes | None
    gas: int | None
    gas_price: int | None
    max_fee_per_gas: int | None
    max_priority_fee_per_gas: int | None
    value: int | None
    data: bytes
    """Call data, or the transaction to send."""

@final
class GraphqlReply:
    @staticmethod
    def nothing() -> GraphqlReply:
        """Make the reply for a missing state."""

    @staticmethod
    def call(succeeded: bool, gas_used: int, output: bytes, /) -> GraphqlReply: ...
    @staticmethod
    def gas(gas: int, /) -> GraphqlReply: ...
    @staticmethod
    def sent(hash: bytes, /) -> GraphqlReply: ...
    @staticmethod
    def failed(code: int | None, message: str, data: str | None, /) -> GraphqlReply: ...

# --- wire ---------------------------------------------------------------------------------------

class WireError(NativeError):
    """A peer sent invalid bytes; the message names the position."""

HANDSHAKE_ENTROPY: int
"""Number of random bytes that a handshake needs."""

MAX_HANDSHAKE_SIZE: int
"""Maximum size of a handshake message. A larger size prefix is refused before the message is read."""

@final
class Handshake:
    """RLPx handshake without sockets: send `auth`, then pass the peer's ack to `finish`."""

    @staticmethod
    def initiate(secret: bytes, remote_id: bytes, entropy: bytes, /) -> Handshake: ...

    auth: bytes
    """The first message, with its two size bytes."""
    def finish(self, ack: bytes, /) -> Session:
        """Complete the handshake; the ack includes its two size bytes. Raises WireError if the ack is invalid or the
        peer's key is not the dialled key.
        """

    @staticmethod
    def answer(secret: bytes, auth: bytes, entropy: bytes, /) -> tuple[bytes, bytes, Session]:
        """Read an auth with its two size bytes. Returns (ack to send, node id of the initiator, session)."""

    @staticmethod
    def caller(secret: bytes, auth: bytes, /) -> bytes:
        """Return the unverified node id in an auth. Takes a tenth of the time of `answer`."""

@final
class Session:
    """Encrypts and decrypts frames after a handshake."""

    is_compressed: bool
    """Whether messages are compressed. The caller must set a value as soon as it knows the peer's Hello. Until then
    `feed` returns one uncompressed message at a time, because Hello decides whether later messages are compressed.
    """
    max_message: int
    """Maximum size of a message in bytes, before and after decompression. The default is 2048, the highest value 2**24
    - 1.
    """
    buffered: int
    """Bytes held for incomplete messages."""
    def seal(self, messages: Sequence[tuple[int, bytes]], /) -> bytes:
        """Return the frames of (message id, payload), in order. Raises WireError and changes nothing if a message is
        larger than a frame.
        """

    def set_max_size(self, id: int, size: int, /) -> None:
        """Limit the payload size of one message id after decompression. `feed` returns only the size of a larger
        payload."""

    def feed(self, data: bytes, /) -> list[tuple[int, bytes | int]]:
        """Return the messages that are now complete, in order. Holds at most `max_message` bytes of an incomplete
        message.

        After a WireError the session is unusable, and the caller closes the socket without a Disconnect. An
        uncompressed Disconnect (id 1) is returned as received.
        """

def split_list(rlp: bytes, max_items: int, /) -> list[bytes]:
    """Return the items of one list, each still encoded. Raises WireError for more than `max_items` items or trailing
    bytes."""

def split_transactions(rlp: bytes, max_items: int, /) -> list[bytes]:
    """Return the items of a list of transactions in EIP-2718 form. On the wire, typed transactions are wrapped in a
    string."""

def split_and_hash_transactions(rlp: bytes, max_items: int, /) -> tuple[list[bytes], list[bytes]]:
    """Return the hashes and the items of a list of transactions, as `split_transactions` returns them. The items are
    hashed together, which takes less time."""

def join_transactions(raws: Sequence[bytes], /) -> bytes:
    """Encode transactions as a list; the reverse of `split_transactions`."""

def split_bodies(rlp: bytes, max_items: int, /) -> list[Body]:
    """Return the bodies in a list of `[transactions, ommers, withdrawals?]`. Roots and senders are computed later."""

def split_receipts(rlp: bytes, has_blooms: bool, max_blocks: int, /) -> list[Receipts]:
    """Return the receipts of each block in a list. Before eth/69, receipts have blooms."""

def body_rlp(block: bytes, /) -> bytes:
    """Return `[transactions, ommers, withdrawals?]` of a stored block."""

def seal_packet(secret: bytes, kind: int, data: bytes, /) -> bytes:
    """Build a discovery v4 datagram: hash, signature, type, data."""

def open_packet(datagram: bytes, /) -> tuple[bytes, bytes, int, bytes]:
    """Return (hash, node id of the signer, type, data) of a datagram. The data is one RLP list; further bytes are
    ignored.
    """

def sign_record(secret: bytes, seq: int, pairs: Sequence[tuple[bytes, bytes]], /) -> bytes:
    """Return the RLP of a signed node record. Values are RLP. Pairs may have any order. `id` and `secp256k1`
    are added.
    """

def read_record(rlp: bytes, /) -> tuple[bytes, int, list[tuple[bytes, bytes]]]:
    """Verify the signature of a record; return (node id, sequence number, pairs)."""

# --- client input -------------------------------------------------------------------------------

@final
class JsonOutline:
    """Positions of values in a JSON text."""

    is_request: bool
    is_batch: bool
    count: int
    """Number of elements of a batch."""
    values: int
    """Number of all values, including keys."""
    id: tuple[int, int] | None
    """Start and end of the member `id`, or of the last member `id` if the text repeats it."""
    method: tuple[int, int] | None
    params: tuple[int, int] | None
    def member(self, position: int, /) -> tuple[int, int, int]:
        """Return start, end and number of values of one batch element. A list of all elements would take more memory
        than the text.
        """

@final
class PlainRequests:
    """Fast path of the dispatcher: parses plain JSON-RPC requests."""

    def __new__(cls) -> PlainRequests: ...
    def answer(self, method: str, read: LatestRead, /) -> None:
        """From now on, reply directly to requests of this method about the latest block."""

    def read(self, text: bytes, /) -> bytes | tuple[bytes, str, list[str | bool | dict[str, str]] | bytes] | None:
        """Read one message. Returns a reply; or id digits, method and parameters (strings, booleans and objects of
        strings) of a plain request; or None if the slow path must parse the message. A raw transaction has `bytes` as
        parameters.
        """

def json_outline(text: bytes, max_members: int, /) -> JsonOutline | None:
    """Return the outline of a text, or None if the text is not JSON. Creates no objects and releases the GIL for long
    texts.
    """

@final
class FrameReader:
    """Frame parser of one WebSocket client."""

    def __new__(cls, max_frame: int, max_message: int, /) -> FrameReader: ...
    held_bytes: int
    """Bytes held for an incomplete message."""
    def read(self, data: bytes, start: int, max_frames: int, /) -> tuple[int, list[tuple[int, bytes]], int, int | None]:
        """Parse frames. Returns the next offset; opcodes (text 1, binary 2, close 8 with its code, ping 9) with
        payloads; the number of pings and pongs; and a close code if the client violated the protocol."""

# --- private transactions -----------------------------------------------------------------------

@final
class PrivateTransaction:
    """A decoded private transaction with its sender. Its list has twelve items, or fourteen with EIP-1559 fees."""

    raw: bytes
    hash: bytes
    """Hash of the whole RLP list. Clients identify the transaction by the hash of its marker."""
    sender: bytes | None
    """Address of the sender; None when the signature is invalid."""
    nonce: int
    gas_price: int
    max_priority_fee: int | None
    """Maximum priority fee; None for a legacy transaction. If it is set, `gas_price` is the maximum fee per gas."""
    gas_limit: int
    to: bytes | None
    value: int
    data: bytes
    signature: tuple[int, int, int]
    """Signature values v, r and s."""
    chain_id: int | None
    private_from: bytes
    private_for: list[bytes] | None
    privacy_group_id: bytes | None
    group: bytes | None
    """Id of the privacy group; None when the id is not 32 bytes long."""
    restriction: bytes

def decode_private_transaction(raw: bytes, /) -> PrivateTransaction: ...
def decode_private_transactions(raws: Sequence[bytes], /) -> list[PrivateTransaction]:
    """Decode many private transactions on all cores. An item that cannot be decoded gives an exception in the list."""

def sign_private_transaction(
    secret: bytes,
    *,
    nonce: int,
    gas_price: int,
    gas_limit: int,
    to: bytes | None,
    data: bytes,
    private_from: bytes,
    private_for: Sequence[bytes] | None = None,
    privacy_group_id: bytes | None = None,
    chain_id: int | None = None,
    value: int = 0,
    restriction: bytes | None = None,
    max_priority_fee: int | None = None,
) -> bytes:
    """Return a signed private transaction for recipients or for a privacy group. With `max_priority_fee`, the
    transaction has type 2.
    """

def private_gas_limit(raw: bytes, /) -> int | None:
    """Return the gas limit of a private transaction without checking its signature; None if the bytes are not a private
    transaction.
    """

def encode_versioned(raw: bytes, version: bytes, /) -> bytes:
    """Encode a payload of a flexible group: a transaction and the version of the member list that the sender used."""

def decode_versioned(payload: bytes, /) -> tuple[bytes, bytes, bytes]:
    """Return transaction, version and group of a payload of a flexible group."""

def sign_markers(precompile: bytes, markers: Sequence[tuple[bytes, int, int, int, bytes]], /) -> list[bytes]:
    """Sign markers, each given as (secret, nonce, gas price, gas limit, data)."""

def private_contract_address(sender: bytes, nonce: int, group: bytes, /) -> bytes: ...

@final
class PrivateBatch:
    """Executes the private transactions of some blocks in memory. `commit` writes the results."""

    def __new__(cls, store: Store, /, *, chain_id: int, always_increments: bool = False) -> PrivateBatch: ...
    def rewind(self, group: bytes, before: int, /) -> None:
        """Reset a group to its state before a block."""
    def note_markers(self, markers: Sequence[tuple[bytes, int, int, bytes, bytes]], /) -> None:
        """Record executed markers, each given as (payload key, number, index, block, hash)."""
    def run_block(
        self,
        state: State,
        env: BlockEnv,
        block: bytes,
        payloads: Sequence[tuple[bytes, int, bytes, bytes, bytes, bytes, Sequence[bytes] | None, bytes | None]],
        /,
    ) -> None:
        """Execute payloads in order, each given as (marker, index, payload key, group, key of the sender, RLP, members
        of the group, version of a flexible group). `state` is the public state after the block.
        """
    def trace(
        self,
        state: State,
        env: BlockEnv,
        block: bytes,
        payloads: Sequence[tuple[bytes, int, bytes, bytes, bytes, bytes, Sequence[bytes] | None, bytes | None]],
        deadline_s: float,
        /,
    ) -> TraceStream:
        """Return the flat trace of the last payload, after executing the payloads before it. All payloads belong to one
        group and block. Nothing is written to the database.
        """
    def commit(self, store: Store, followed: tuple[bytes, int] | None, settled: Sequence[bytes] = ..., /) -> None:
        """Write all results and the last executed block, and remove the `settled` payloads from the late payloads."""

@final
class PrivateReceiptRecord:
    """Result of a private transaction."""

    status: int
    """0 for failure, 1 for success, 2 if the transaction could not be executed."""
    group: bytes
    root: bytes
    payload_key: bytes
    index: int
    hash: bytes
    sender: bytes
    to: bytes | None
    created: bytes | None
    private_from: bytes
    private_for: list[bytes] | None
    output: bytes
    revert_data: bytes
    reason: str
    log_count: int
    logs_bloom: bytes
    def matching(
        self, addresses: Sequence[bytes], topics: Sequence[Sequence[bytes] | None], start: int, most: int, /
    ) -> list[tuple[int, bytes, list[bytes], bytes]]:
        """Return (position, address, topics, data) of at most `most` logs that match, starting at a position."""

@final
class PrivateLedger:
    """Read access to private states and results."""

    def __new__(cls, store: Store, /) -> PrivateLedger: ...
    def followed(self) -> tuple[bytes, int] | None:
        """Return the block up to which private transactions have been executed."""
    def markers_in(
        self, block: bytes, number: int, precompile: bytes, is_flexible: bool = False, /
    ) -> list[tuple[bytes, int, int, bytes, bytes]]: ...
    def hand_overs_in(self, block: bytes, /) -> list[tuple[bytes, bytes]]:
        """Return (payload key, handover index key) of each payload that adds members to a flexible group in a block."""
    def membership(self, group: bytes, number: int, /) -> tuple[bool, bytes, list[bytes]] | None:
        """Return (is unlocked, version, keys of the members) of a flexible group, or None if the group is unknown."""
    def markers_of(self, payload_key: bytes, /) -> list[tuple[bytes, int, int, bytes, bytes]]:
        """Return the recorded canonical markers of a payload."""
    def unread(self, start: bytes, most: int, /) -> tuple[list[bytes], bytes | None]:
        """Return payload keys of markers without a result, starting at a key, and the key of the next page."""
    def note_late(self, keys: Sequence[bytes], /) -> None:
        """Record payloads that arrived after their block was executed, so that the private executor reads them again."""
    def late(self, start: bytes, most: int, /) -> list[bytes]:
        """Return keys of late payloads that are not executed yet, from a key on."""
    def receipt(self, block: bytes, marker: bytes, /) -> PrivateReceiptRecord | None: ...
    def root(self, group: bytes, number: int, /) -> bytes: ...
    def nonce(self, group: bytes, account: bytes, number: int, /) -> int: ...
    def state(self, group: bytes, number: int, public: State, /) -> State: ...
    def roots(self, group: bytes, number: int, block: bytes, /) -> list[tuple[bytes, bytes]]:
        """Return marker and resulting state root of each transaction of a group in a block."""
    def blocks(self, group: bytes, first: int, most: int, /) -> list[tuple[int, bytes]]:
        """Return up to `most` canonical blocks, from number `first` on, in which a group has transactions."""
    def groups(self, start: bytes, most: int, /) -> list[bytes]: ...
    def clear(self) -> None:
        """Delete all private states and results; payloads stay."""

# --- tables -------------------------------------------------------------------------------------

@final
class ColumnBuffer:
    """Read-only bytes of a column or a file, for the buffer protocol."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class TableData:
    """Rows of one dataset: the requested columns, in the order of the dataset."""

    @property
    def rows(self) -> int: ...
    @property
    def size(self) -> int:
        """Return the size of the table in memory, in bytes."""

    def columns(self) -> list[tuple[int, ColumnBuffer | None, ColumnBuffer | None, ColumnBuffer]]:
        """Columns in Arrow's layout: (nulls, validity bitmap, offsets, values)."""

@final
class ParquetEncoder:
    """Encodes tables of one dataset as a Parquet file. The caller writes the returned bytes to the file, in order."""

    def __new__(
        cls,
        dataset: str,
        columns: Sequence[str],
        repeating: Sequence[str],
        metadata: Sequence[tuple[str, str]],
        hex: bool,
        /,
    ) -> ParquetEncoder: ...
    def row_group(
        self, tables: Sequence[TableData], threads: int, write: Callable[[ColumnBuffer], object], /
    ) -> None:
        """Encode tables, at least one, as a row group. `write` receives the parts of the file in order, while other
        threads encode. Its errors pass through.
        """

    def finish(self) -> ColumnBuffer:
        """Encode the footer, which ends the file."""

@final
class RowFilter:
    """Selects rows by addresses and topics of logs, and by senders and recipients; an empty filter selects all rows."""

    def __new__(
        cls,
        addresses: Sequence[bytes] = ...,
        topics: Sequence[Sequence[bytes] | None] = ...,
        senders: Sequence[bytes] = ...,
        recipients: Sequence[bytes] = ...,
        /,
    ) -> RowFilter: ...

@final
class ReplayStop:
    """Stops `replay_tables` in other threads. `replay_tables` then raises TimedOut."""

    def __new__(cls) -> ReplayStop: ...
    def set(self) -> None: ...

def table_columns() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the datasets with name and type of each column."""

def block_ranges(store: Store, first: int, last: int, max_transactions: int, /) -> list[int]:
    """Split blocks first..last into ranges with a limited number of transactions and blocks. Returns the last block of
    each range.
    """

def scan_table(
    store: Store,
    dataset: str,
    columns: Sequence[str],
    first: int,
    last: int,
    filter: RowFilter,
    chain_id: int,
    hex: bool,
    max_bytes: int,
    /,
) -> tuple[int, TableData]:
    """Return (next block to read, rows of stored blocks). The scan stops after the block with which the table reaches
    `max_bytes`.
    """

def replay_tables(
    blocks: Sequence[TracedBlock],
    datasets: Sequence[tuple[str, Sequence[str]]],
    filter: RowFilter,
    chain_id: int,
    hex: bool,
    stop: ReplayStop,
    max_bytes: int,
    /,
    *,
    is_fast: bool = True,
) -> tuple[int, list[TableData]]:
    """Return the number of executed blocks and their rows. Each block executes once for all datasets, given by name and
    columns. The execution stops after the block with which the tables reach `max_bytes`. Without `is_fast`, an
    inspector sees every instruction; the rows are the same.
    """

# --- public test vectors ------------------------------------------------------------------------

def state_test(text: bytes, /) -> list[tuple[str, str, bool | None, str]]:
    """Run a GeneralStateTests file. Returns (case, fork and indexes, passed or None if skipped, detail)."""

def transaction_test(text: bytes, /) -> list[tuple[str, str, bool | None, str]]: ...
