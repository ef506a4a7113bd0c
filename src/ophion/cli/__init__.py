"""The command line: `ophion [OPTIONS] [COMMAND] [OPTIONS]`.

    main        the entry point: runs a command, turns every failure into one line and an exit code
    arguments   argv to a command, its own options and the global ones, wherever they stand
    loading     the sources put together: flags, environment, file
    command     Command, Family, Session: what a command is and what it is given
    commands    the table of all commands
    help        usage and help texts
    files       reading input and writing results: a file, the standard streams, a terminal
    rpc_node    the node that a command asks, and the options that say where it is
    progress    a bar on a terminal, plain lines elsewhere

One file per family of commands, or several that begin with its name: bench, blocks, dev, doctor, evm, keys, operator,
password, permissions, privacy, quickstart, rlp, simulate, storage, validate. A family is imported when it is called, so
that starting a node does not pay for tools it does not use. A command declares its options like any configuration
(`runtime.options`), raises `OphionError` when it cannot do its work, and returns an exit code.

Exit codes: 0 done, 1 an expected error or a failed check, 70 an error inside Ophion, 130 interrupted.
"""
