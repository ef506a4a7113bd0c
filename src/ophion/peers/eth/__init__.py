"""The eth protocol: which chain a node has, blocks, transactions, and requests for both (networking.md 3).

    protocol      the versions offered, the status told and judged, messages handed to whoever deals with them
    peer, peers   one connection that speaks eth; all of those whose status is good
    versions      what differs between eth/68 and eth/69, as a table; offer: their numbers
    messages      the messages as typed values; fields: reading them strictly
    fork_id       whether two nodes follow the same rules

    requests      what is asked of a peer, matched with its answer; exchanges: answers held against the question
    serving       what a peer asks, answered one after the other; answers: where the answers come from

    block_gossip         blocks announced to us and by us; block_fetcher: those announced by hash
    transaction_gossip   transactions passed on; transaction_fetcher, transaction_intake: those of peers on their way in

Messages are dispatched in order on the event loop. Whatever takes longer than a moment, decoding of long messages
included, runs in the lane `peers`, with the number and size of what a peer may have under way bounded.
"""
