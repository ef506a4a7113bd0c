"""Reads databases of LevelDB and Pebble without their libraries.

    varints       numbers and byte strings of the formats
    log_records   records of logs and manifests; write batches
    manifest      the live tables by level
    sorted_table  one table: index, data blocks, lookup
    database      lookup through the logs and all levels

A database is a log of recent writes and levels of immutable sorted tables. An upper level hides the levels below it.
The reader checks no checksums, because the import verifies the hash of every block. It reads the table formats of
LevelDB, RocksDB 2 and Pebble 1 and 2.
"""
