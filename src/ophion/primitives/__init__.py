"""Values: the words every other room speaks.

Nothing in here does input or output, knows a clock, or imports another room (`ophion.errors` excepted).

    types      names for byte strings (`Address`, `Hash32`), block references, well-known constants
    hexcodec   hexadecimal at the edges: strict DATA and QUANTITY, and the forgiving block-number parser
    rlp        RLP for headers, messages and tooling; bulk work on transactions happens in Rust
    block      `Header` and `HashedHeader`
    enode      node addresses

A `Header` has no hash because its hash depends on the consensus engine (a proof-of-authority header leaves out its
seals). Where a header enters the node, `engine.hashed(header)` pairs it with its hash once, and the pair travels as
a `HashedHeader`.
"""
