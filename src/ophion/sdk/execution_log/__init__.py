"""What a development node shows of calls and transactions: console output, reasons, call trees, source lines.

contract_index   the artifacts of a project: names, ABIs, errors, and which contract runs at an address
call_report      the call tree, for a terminal and for the web interface
source_steps     the source lines that a transaction visits
execution_log    `ExecutionLog`, the observer of a development node
"""
