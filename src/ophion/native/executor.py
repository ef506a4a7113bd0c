"""Running blocks and calls on a state."""

from ophion._native import (
    AccountOverride,
    BlockEnv,
    Built,
    CallOutcome,
    CallRequest,
    ChainRules,
    Execution,
    State,
    build,
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
    "Built",
    "CallOutcome",
    "CallRequest",
    "ChainRules",
    "Execution",
    "State",
    "build",
    "call",
    "call_each",
    "create_access_list",
    "estimate_gas",
    "execute",
    "genesis_state",
    "quick_call",
]
