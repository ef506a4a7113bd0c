"""The eth protocol: status exchange, block and transaction gossip, requests and responses (networking.md 3).

    protocol      `EthProtocol`: offers the versions, checks the Status of peers, dispatches messages
    peer, peers   one connection that speaks eth; all peers with a valid Status
    versions      the differences between eth/66, eth/68 and eth/69; supported_versions: their numbers
    messages      the messages as typed values; field_decoding: strict decoding of their fields
    fork_id       fork identifiers (EIP-2124)

    requests      requests to a peer, matched with responses; response_validation: checks responses
    request_handler  answers the requests of one peer; response_reader: reads the responses from chain and pool

    block_gossip         imports and announces blocks; block_fetcher: fetches blocks announced by hash
    held_blocks          limits of received blocks that are not imported yet
    transaction_gossip   announces transactions; transaction_fetcher, transaction_intake: receive those of peers

Messages are dispatched in order on the event loop. Long work, such as decoding large messages, runs in the lane `peers`
(worker threads). The number and the size of a peer's messages in progress are bounded.
"""
