"""The command line: `ophion [OPTIONS] [COMMAND] [OPTIONS]`.

    main            entry point: runs a command and turns every failure into one line and an exit code
    arguments       splits argv into command, its options and global options
    option_loading  combines flags, environment and file, with names and values of Besu
    command         Command, Family, CommandSession
    command_table   the table of all commands
    help            usage and help texts
    input_output    input and results: a file, the standard streams, a terminal
    node_client     JSON-RPC client of the commands; untrusted_text escapes text from a node
    progress        a bar on a terminal, plain lines elsewhere

Each family of commands has a module of the same name, or several modules that begin with it. A family is imported only
when it is called, so that a node starts faster. A command declares its options like any configuration
(`runtime.options`), raises `OphionError` when it fails, and returns an exit code.

Exit codes: 0 done, 1 an expected error or a failed check, 70 an error inside Ophion, 130 interrupted.
"""
