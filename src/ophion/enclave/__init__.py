"""The enclave: payloads that only their participants can read, and the groups they belong to.

    contract     what the rest of the node knows of an enclave, inside or outside: `Enclave`, `Group`, `Received`
    inside       `EmbeddedEnclave`: the enclave in this process
      intake       what comes in is judged, numbered and written         rows        many writers, one commit
      delivery     what goes out is pushed to its recipients             outbox      for those who are away
      directory    who can be reached, by proven keys                    parcels     what is handed over, and over what
      groups       groups that are known                                 group_ids, group_record
      quota        what others may leave here unasked                    serving     what they may have of ours
    outside      a client of an enclave in another process
    keyfile      private and public keys on disk                         opening     those that the options name
    texts        keys, ids and groups as people and tools write them     words       what troubles are called
    options      the command line's side of it

The lines to other enclaves are connections of `peers.priv`; `enclave_http` serves the enclave inside to tools.
"""
