"""The enclave inside, served to tools that were written for one outside (privacy.md 5).

    application   paths and methods to operations of the enclave; statuses and words of Orion's dialect
    forms         what requests hold and answers show: JSON, base64

It is one more application of `rpc.transport`: places, limits, host list and slow clients are handled there. Whoever
reaches this port can read and send as the node: it listens on loopback unless told otherwise.
"""
