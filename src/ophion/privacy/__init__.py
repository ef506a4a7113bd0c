"""Private transactions: sent to their participants, ordered by the public chain, executed by participants alone.

    eea_sendRawTransaction ─> submission: decode, check ─> enclave: seal, store, deliver ─> marker ─> pool
    chain: a block is committed ─> private_executor: markers ─> enclave: payloads ─> states, receipts, logs ─> disk

Block import does not wait for private execution. The executor follows the canonical chain and stores results under the
hashes of public blocks. It writes its position together with the results, so a killed node resumes there. A payload
that arrives after its marker is executed at the marker's position, followed by all later transactions of its group.

    submission        validates a private transaction
    marker_sender     signs marker transactions and adds them to the pool
    private_executor  walks the chain from marker to marker
    late_payloads     executes payloads whose markers have already been processed
    marker_settings   options and keys with which markers were read, and what happens when they change
    backlog           groups that need more execution time; backlog_executor runs them
    payloads          reads payloads of markers from the enclave
    payload_retries   asks a remote enclave again for missing payloads
    flexible_groups   groups whose member list is in a contract
    payload_handover  sends earlier transactions of such a group to a new member
    rpc_objects       receipts, logs and transactions as JSON
    service           `Privacy`: the entry point of the interface
    tenant_authorizer  authorisation when several tenants share a node
"""
