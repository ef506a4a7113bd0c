"""Messages of validators on connections: IBF/1 for IBFT 2.0 chains, istanbul/100 for QBFT chains.

    Validators          who of the peers speaks the protocol; `Gossip` for the driver, and what comes in goes to it
    ConsensusProtocol   one `Subprotocol` for each protocol of the chain, offered by every node of it, validator or not

Nothing here judges a message: the driver decodes it, the machine decides what becomes of it. What a peer can cost is
bounded before that.
"""
