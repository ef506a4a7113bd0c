"""Options: declared as fields of a class, read from flags, environment and file.

    class PoolConfig(Options):
        '''Transaction pool.'''                      # the heading in --help and in the documentation
        max_size: int = option("--tx-pool-max-size", default=4096, help="Maximum number of transactions.")

This field defines the flag `--tx-pool-max-size`, the variable `OPHION_TX_POOL_MAX_SIZE`, the TOML key
`tx-pool-max-size`, the line in `--help` and the line in `docs/options.md`. A configuration is a tree: a field whose
type is a configuration class is a part. Each package receives only its own part.

    declare   Options, option(), OptionSpec, specs_of(): the options of a configuration class
    values    text to typed value: numbers, booleans, paths, enums, lists, and checks such as `port`
    sources   flags, environment and file: read_flag(), read_environment(), read_file()
    load      precedence, construction, checks and warnings: load(); part_of()
    render    --help text and the documentation page

A class may have a method `problems()` that yields sentences about contradicting values, and a method `warnings()` for
values that look like a mistake. All problems are reported together.
"""

from ophion.runtime.options.declare import Options, OptionSpec, option, specs_of
from ophion.runtime.options.load import LoadedConfig, load, part_of, problems_of, warnings_of
from ophion.runtime.options.sources import (
    OptionSource,
    OptionTexts,
    misspelt_variables,
    read_environment,
    read_file,
    read_flag,
    split_text,
)
from ophion.runtime.options.values import (
    at_least,
    between,
    hex_bytes,
    hosts_of,
    is_loopback,
    is_url,
    port,
    read_address,
    read_host,
    read_text,
)

__all__ = [
    "LoadedConfig",
    "OptionSource",
    "OptionSpec",
    "OptionTexts",
    "Options",
    "at_least",
    "between",
    "hex_bytes",
    "hosts_of",
    "is_loopback",
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
    "split_text",
    "warnings_of",
]
