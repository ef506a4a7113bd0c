"""Synchronisation: how a node that is behind gets the blocks it lacks (networking.md 4).

    synchroniser   is there a better chain, whose, and how far have we come; one cycle after the other
      ancestor     the last block that we and the target have in common
      download     one cycle: header requests, body requests and imports, all going on at the same time
        headers    which headers to ask for next, and what has come linked into one chain
        bodies     blocks in order, each waiting for its body
      progress     the figures behind eth_syncing, and the line in the log
      figures      what metrics show

Headers come from the target (and, a long way behind, from all who have them, between posts that the target has set),
bodies from everybody at once, and blocks go into the chain in order, many in one commit, through the same core as
files. What is imported stays: a cycle that breaks off, and a process that is killed, go on from there. What lies
between download and import is bounded in headers and in bytes.
"""
