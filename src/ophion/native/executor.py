"""Running blocks and calls on a state."""

from ophion._native import (
    AccountOverride,
    BlockEnv,
    CallOutcome,
    CallRequest,
    ChainRules,
    Execution,
    OpenBlock,
    State,
    Taken,
    call,
    call_each,
    create_access_list,
    estimate_gas,
    execute,
    genesis_state,
    quick_call,
)

__all__ = [
    "AccountOverride",
    "BlockEnv",
    "CallOutcome",
    "CallRequest",
    "ChainRules",
    "Execution",
    "OpenBlock",
    "State",
    "Taken",
    "call",
    "call_each",
    "create_access_list",
    "estimate_gas",
    "execute",
    "genesis_state",
    "quick_call",
]
