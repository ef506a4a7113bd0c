"""Synchronisation: downloads and imports the blocks that this node lacks (networking.md 4).

    synchroniser           chooses the target peer and runs one sync cycle after the other
      common_ancestor      finds the common ancestor with the target
      download             one cycle: header requests, body requests and imports run concurrently
        header_requests    plans the header requests and links the received headers into one chain
        body_queue         queues blocks in order until their bodies arrive
      progress             the values of eth_syncing, and the progress log
      sync_metrics         counters and durations
    block_history          downloads old bodies and receipts after snap synchronisation, in the background

Near the head, all headers come from the target. Far behind, the target sends a skeleton of headers and all peers fill
the gaps. Bodies come from all peers. Blocks are imported in order, many in one commit. Imported blocks stay when a
cycle fails or the process ends. Memory between download and import is bounded in headers and in bytes.
"""
