"""What a development node shows of calls and transactions: console output, reasons, call trees, source lines.

contract_index   the artifacts of a project: names, ABIs, errors, and which contract runs at an address
source_map       lines of Solidity code at positions of the bytecode
call_report      the call tree as text for a terminal
execution_log    `ExecutionLog`, the observer of a development node
"""
