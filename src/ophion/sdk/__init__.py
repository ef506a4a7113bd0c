"""A development chain inside Python: `from ophion import Chain`.

    Chain ──> Contract ──> ContractMethod    calls and transactions with decoded results
      │          └──> abi/                   codec of the contract ABI
      ├──> EmbeddedNode                      the parts of a node, without listeners and without threads
      │        └──> LoopRunner               runs the node's coroutines for synchronous callers
      ├──> web3_provider, http_server        the same chain for web3.py and for other programs
      ├──> branch                            read-only views and copy-on-write branches of any block
      └──> call_tree, receipt, html          results of transactions, as text and for notebooks

    pytest_plugin                            fixtures, gas report, call trees of failed tests

Calls read the state of the head in the calling thread. Everything that moves the head runs on the event loop of the
chain, under the lock of the chain.
"""
