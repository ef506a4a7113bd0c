"""priv/1: enclaves inside nodes talk over the sessions that the nodes have anyway (privacy.md 15.2).

    0 Announce      [keys]                                    the enclave keys that this node claims
    1 Challenge     [[key, ephemeral key, nonce, box], ...]   prove that you hold them
    2 Proof         [[key, text], ...]
    3 PushPayload   [record, ...]                             sealed payloads
    4 Ack           [[label, reason], ...]                    empty reason: it is durable here
    5 PushGroup     [group, ...]
    6 GetPayload    [id, [label, ...]]                        what was listed, or is missing
    7 Payload       [id, [[label, body], ...]]
    8 List          [id, key, after]                          what came for this key, which the asker has proven
    9 Listed        [id, [label, ...], last, more]

The handshake of the session has proven the node's own key, so announcements are not signed again. A box is opened by
whoever has the private key, wherever it comes from; so the boxed text of a challenge names both nodes of the session,
and nobody can have it answered by somebody else.

    messages   the forms above
    peer       the protocol on one connection; a `Line` for the enclave
    proofs     challenges and their answers         pushes   parcels on their way to one peer
    protocol   the sub-protocol: a capability, and what all connections share
"""
