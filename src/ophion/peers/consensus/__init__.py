"""Consensus messages on connections: IBF/1 for IBFT 2.0 chains, istanbul/100 for QBFT chains.

    Validators          sends messages of the consensus driver to validator peers, and passes received messages to it
    ConsensusProtocol   the sub-protocol of one protocol variant; every node offers it, validator or not

This package limits the rate and size of messages per peer. The consensus driver decodes the
messages, and its state machine validates them.
"""
