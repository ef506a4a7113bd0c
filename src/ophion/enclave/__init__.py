"""The enclave: payloads that only their participants can read, and the groups they belong to.

    interface        what the rest of the node knows of an enclave: `Enclave`, `Group`, `OpenedPayload`
    embedded         `EmbeddedEnclave`: the enclave in this process
      payload_intake      validates and stores payloads from other enclaves; store_writer: many writers, one commit
      payload_quota       limits payloads to which no marker transaction on the chain refers
      purge_unreferenced  deletes payloads without a marker transaction in a stopped node
      delivery            pushes payloads to their recipients; outbox: payloads for absent recipients
      payload_exchange    the payloads and groups that enclaves exchange, and the interface of a connection
      missed_payloads     fetches payloads that this enclave has missed
      peer_directory      connected enclaves by proven key
      privacy_groups      known groups; group_ids, group_record
      payload_access      what other enclaves may read
    remote           client of an enclave in another process
    keyfile          private and public keys on disk                       key_loading  keys that the options name
    encoding         keys, ids and groups as text                          error_codes  codes of `EnclaveError`
    options          command line options

Connections to other enclaves are in `peers.priv`; `enclave_http` serves the embedded enclave to tools.
"""
