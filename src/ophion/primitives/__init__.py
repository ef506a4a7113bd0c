"""Value types and codecs that all other packages use.

No module does input or output, reads a clock, or imports another package, except `ophion.errors`.

    types      type aliases (`Address`, `Hash32`), block references, well-known constants
    hexcodec   hexadecimal text: DATA, QUANTITY and lenient number parsing
    rlp        RLP for headers, messages and tools; Rust decodes transactions
    header     `Header` and `HashedHeader`
    enode      enode URLs

A `Header` has no hash, because the hash depends on the consensus engine: proof-of-authority hashes omit the seals. When
a header enters the node, `engine.hashed(header)` computes the hash once and returns a `HashedHeader`.
"""
