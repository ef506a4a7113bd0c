"""The typed door to the Rust extension, and the only importer of `ophion._native`.

    crypto         keys, Keccak, signatures
    transactions   transactions and block bodies: decoding, senders, roots
    tries          roots of small tries, proofs
    ethash         light verification and search
    executor       run, build, call, estimate; simulation: blocks that are not kept; cancellation: ending any of it
    tracing        running again, with somebody looking on
    store          the database: blocks, state, upkeep
    graphql        checking and running requests
    wire           handshakes, frames, discovery packets, node records
    messages       what clients send: outlines of JSON texts, frames of WebSockets
    enclave        sealed payloads and their keys; privacy: private transactions and what running them leaves
    memory         how the process keeps what was freed
    vectors        runners for the public state and transaction tests
    contract       whether the extension is the one that these sources were written for
    failures       the extension's exceptions, and their translation into `ophion.errors`

Most names are the extension's own, passed on without a wrapper, because a call through them has to cost nothing.
The extension raises subclasses of `NativeError`, which know nothing of our error tree; `failures.translated` is the
one place where they turn into `OphionError`s, used where an error leaves the engine for a person or a peer.
"""

from ophion.native.abi_check import check_contract

check_contract()
