"""`python -m ophion` is the `ophion` command."""

import sys

from ophion.errors import ExtensionError
from ophion.runtime.garbage import while_starting
from ophion.runtime.interrupts import end_at_once


def main() -> int:
    """The `ophion` command, loaded in peace."""
    end_at_once()
    while_starting()
    try:
        from ophion.cli.main import main as run
    except ExtensionError as error:
        sys.exit(str(error))
    return run()


if __name__ == "__main__":
    sys.exit(main())
