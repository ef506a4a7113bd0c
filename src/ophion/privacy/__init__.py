"""Private transactions: distributed to their participants, ordered by the public chain, executed by participants alone.

    eea_sendRawTransaction ─> submission: decode, check ─> enclave: seal, store, deliver ─> marker ─> pool
    chain: a block is committed ─> private_executor: markers ─> enclave: payloads ─> states, receipts, logs ─> disk

Block import does not wait for it. The executor follows the canonical chain. It writes results under the hashes of
public blocks, together with the block it has reached, and a killed node goes on from there. A payload that arrives
after its marker is executed at its place in the chain, with everything of its group since.

    submission        validates a private transaction
    markers           signs marker transactions
    private_executor  walks the chain from marker to marker; executes payloads that came late
    backlog           groups that need more time; backlog_executor runs them
    payloads          reads payloads of markers from the enclave
    retries           asks a remote enclave again for payloads that it did not have
    flexible          groups whose members a contract keeps
    payload_handover  earlier transactions of such a group for a new member
    results           receipts, logs and transactions as JSON
    service           `Privacy`: the entry point of the interface
    tenants           authorisation when several tenants share a node
"""
