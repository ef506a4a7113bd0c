"""Starts a node from a backup of another node (`--sync-mode=CHECKPOINT`), verified before use.

    path or URL ─> staging ─> child process: headers and seals, removal, contents ─> rename to `database`

location              `--sync-checkpoint`: a directory, an archive, or an HTTP(S) address
download              an archive over HTTP(S), resumed after an interruption
archive               a backup as one tar file: writing and reading
verification          genesis, headers, contents, the state of the head
header_chain          hashes and seals of the headers
removal               deletion of side blocks, older states and private data
verification_process  verification in a process of its own, because a damaged LMDB file can crash it
installation          runs all steps in the data path of a node

The directory `checkpoint` in the data path holds everything until the last rename. A killed process leaves no database,
and the next start continues. Decision 180 describes what is verified.
"""
