"""IBFT 2.0 and QBFT: one state machine, two protocols.

    validator_set          validators of a height, quorum size, proposer order
    messages               decoded proposals, prepares, commits and round changes
    events                 input events and output effects of the state machine
    state_machine          `BftStateMachine.handle(event, now) -> effects`; uses height, round and round_change
    message_buffer         duplicates, messages of later heights, limits
    durable_votes          votes that survive a restart; lost_state_recovery: what happens without them
    proposer_liveness      validators whose rounds are skipped
    round_timing           block periods and round timeouts, doubled and capped
    status                 explains what consensus waits for
    protocol               interfaces that both protocols implement
    ibft2, qbft            the two protocols
    message_codec          shared message code; signed_parts: parts of messages; justification: certificate rules
    signatures             recovers authors; message_factory: signs own messages
    client_profiles        chooses the wire profile that the peers understand
    engine                 `Engine` for both: hashing and header rules; uses schedule and validators

A height in round 0 with four validators (IBFT 2.0; in QBFT the proposer prepares too):

    proposer   ── Proposal ──▶ all        the block is due
    others     ── Prepare ───▶ all        the block is valid
    all        ── Commit ────▶ all        a quorum has prepared; stored on disk before the commit is sent
    all        import                     a quorum has committed; its seals go into the header

When a round times out, validators send `RoundChange` for the next round with the block they prepared. The next proposer
must propose that block again. `height.py` argues why this never decides two blocks.
"""
