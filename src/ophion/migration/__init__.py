"""Moves a chain of another Ethereum client into a data directory of Ophion.

    block_source      the interface of a source: head, hash by number, RLP blocks by number
    besu              Besu's RocksDB, Forest and Bonsai; rocksdb_reader opens it through links
    geth              geth's and GoQuorum's LevelDB or Pebble; freezer reads the files of old blocks
    leveldb           reader of LevelDB and Pebble databases
    rpc_source        a running node over JSON-RPC; rpc_block encodes its JSON blocks
    rlp_file          a file of exported blocks
    source_lock       refuses a directory that its client is using
    chain_migration   imports from a source, continues an interrupted run, compares the heads
    node_files        key, static nodes, permission files of the old node; config_translation for config.toml
    comparison        compares replies of the old and the new node to random calls
    private           payloads and groups of Tessera and Orion; comparison of private states

A source is only read. Every block is verified and executed by `chain.import_file`, as with `ophion blocks import`.
RocksDB and Snappy need packages of the extra `ophion[migrate]`; they are imported when a source needs them.
"""
