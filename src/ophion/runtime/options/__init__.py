"""Options: declared once as fields of a class, read from flags, environment and file.

    class PoolConfig(Options):
        '''Transaction pool.'''                      # the heading in --help and in the documentation
        max_size: int = option("--tx-pool-max-size", default=4096, help="Transactions kept in the pool.")

From that one field come the flag `--tx-pool-max-size`, the variable `OPHION_TX_POOL_MAX_SIZE`, the TOML key
`tx-pool-max-size`, the line in `--help` and the line in `docs/options.md`. A configuration is a tree: a field whose
type is again such a class is a part, and its package receives that part only.

    declare   Options, option(), OptionSpec, specs_of(): what options a configuration class has
    values    text to typed value: numbers, booleans, paths, enums, lists, and checks such as `port`
    sources   where values come from: read_flag(), read_environment(), read_file()
    load      precedence, construction, checks and warnings: load(); part_of()
    render    --help text and the documentation page

A class may have a method `problems()` that yields sentences about values that do not go together, and a method
`warnings()` for those that do but look like a mistake. Everything that is wrong is reported in one go.
"""

from ophion.runtime.options.declare import Options, OptionSpec, option, specs_of
from ophion.runtime.options.load import Loaded, load, part_of, problems_of, warnings_of
from ophion.runtime.options.sources import Given, Source, misspelt_variables, read_environment, read_file, read_flag
from ophion.runtime.options.values import at_least, between, hex_bytes, is_url, port, read_address, read_host, read_text

__all__ = [
    "Given",
    "Loaded",
    "OptionSpec",
    "Options",
    "Source",
    "at_least",
    "between",
    "hex_bytes",
    "is_url",
    "load",
    "misspelt_variables",
    "option",
    "part_of",
    "port",
    "problems_of",
    "read_address",
    "read_environment",
    "read_file",
    "read_flag",
    "read_host",
    "read_text",
    "specs_of",
    "warnings_of",
]
