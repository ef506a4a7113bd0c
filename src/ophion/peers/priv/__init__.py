"""priv/1: the sub-protocol between embedded enclaves, over the nodes' devp2p connections (privacy.md 15.2).

    0 Announce      [keys]                                    enclave keys that the sender claims
    1 Challenge     [[key, ephemeral key, nonce, box], ...]   request a proof of each key
    2 Proof         [[key, text], ...]
    3 PushPayload   [record, ...]                             encrypted payloads
    4 Ack           [[label, reason], ...]                    empty reason: stored durably
    5 PushGroup     [group, ...]
    6 GetPayload    [id, [label, ...]]                        request listed or missing records
    7 Payload       [id, [[label, body], ...]]
    8 List          [id, key, after]                          list records for a key that the sender has proven
    9 Listed        [id, [label, ...], last, more]

The RLPx handshake has proven the node key, so announcements carry no signature. The holder of a private key can open a
box from any sender, so an attacker could relay a challenge to the real holder. To prevent that, the text in a challenge
names both nodes of the connection.

    messages      encoding and decoding of the messages above
    peer          the protocol on one connection; implements `EnclaveLink` for the enclave
    key_proofs    challenges and proofs
    payload_push  payload and group records queued for one peer
    protocol      the sub-protocol and its shared state
"""
