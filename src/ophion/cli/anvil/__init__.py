"""The command line of Anvil 1.7.1: its options for `ophion dev`, and the whole command line through a link named anvil.

options        the table of all options
node_settings  the options of the node that do the same
chain_names    fork and chain names
seeded         mnemonics of --mnemonic-random and --mnemonic-seed-unsafe
command_line   `anvil …`: help, version, completions, start
help           help text and documentation, made from the table
completions    completions for shells, made from the table
"""
