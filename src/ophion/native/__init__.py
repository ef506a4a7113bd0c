"""Typed facade of the Rust extension, and the only importer of `ophion._native`.

    crypto         keys, Keccak, signatures
    transactions   transactions and block bodies: decoding, senders, roots
    tries          roots of small tries, proofs
    ethash         light verification and nonce search
    executor       block execution, building, calls, gas estimation
    simulation     simulated blocks
    cancellation   cancellation of work on other threads
    tracing        transaction traces
    store          the database: blocks, states, pruning, integrity
    graphql        validation and execution of requests
    wire           handshakes, frames, discovery packets, node records
    messages       client input: plain requests, JSON outlines, WebSocket frames
    enclave        sealed payloads and their keys
    privacy        private transactions and their results
    memory         memory of the C allocator
    vectors        runners for the public state and transaction tests
    abi_check      whether the extension matches these sources
    exceptions     exceptions of the extension, and their translation into `ophion.errors`

Most names are the extension's own, without a wrapper, so that a call costs nothing extra. The extension raises
subclasses of `NativeError`; `exceptions.translated` turns them into `OphionError`s.
"""

from ophion.native.abi_check import check_contract

check_contract()
