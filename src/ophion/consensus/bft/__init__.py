"""IBFT 2.0 and QBFT: one state machine, two protocols.

    validator_set    who decides a height, what is a quorum, whose turn it is
    messages         proposals, prepares, commits, round changes, decoded
    events           input events and output effects of the state machine
    machine          `BftStateMachine.handle(event, now) -> effects`; height, round and round_change are its inside
    inbox            duplicates, messages of later heights, limits
    memory           what must survive a restart; waiting_out: what is done where it has not
    presence         who is there, and whose turn is passed over
    timing           periods and timeouts, doubled and capped
    status           a doctor for stalls: what the machine waits for, in plain words
    protocol          what the machine needs from a protocol
    ibft2, qbft      the two protocols: in what they differ
    codec            what they share: extra data, reading and writing messages; wire: the pieces; justification: rules
    authorship       whose signature it is; message_factory: own messages with a key
    profiles         which of the two wire profiles to speak
    engine           `Engine` for both: hashing and header rules; schedule and validators stand behind it

A height in round 0, as four validators see it (IBFT 2.0; in QBFT the proposer prepares too):

    proposer   ── Proposal ──▶ all        the block is due
    others     ── Prepare ───▶ all        the block was checked
    everyone   ── Commit ────▶ all        a quorum has prepared: remembered on disk before it is said
    everyone   imports                    a quorum has committed: its seals go into the header

When a round takes too long its validators ask for the next one (`RoundChange`) and say what they had prepared; the next
proposer must propose that block again. Why this never decides two blocks is argued in `height.py`.
"""
