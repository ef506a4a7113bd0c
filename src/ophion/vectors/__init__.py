"""Runners for the public Ethereum test vectors: the same code the node runs, against files others wrote.

Each runner has `run_file(path) -> list[Outcome]` and never raises for what stands in a file: a malformed file is a
failed outcome. `ophion evm block-test` calls `block_test`; the small kinds (difficulty, genesis, RLP, trie) are called
by the tests. State and transaction vectors are run inside the extension (`ophion.native.vectors`).
"""
