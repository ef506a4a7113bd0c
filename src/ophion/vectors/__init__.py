"""Runners for the public Ethereum tests. They run the code of the node.

Each runner has `run_file(path) -> list[Outcome]`. A malformed file is a failed outcome, not an exception. `ophion evm
block-test` calls `block_test`; the tests call the small kinds (difficulty, genesis, RLP, trie). The Rust extension runs
state and transaction tests (`ophion.native.vectors`).
"""
