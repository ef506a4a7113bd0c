"""`python -m ophion` is the `ophion` command."""

import sys

from ophion.runtime.garbage import while_starting
from ophion.runtime.interrupts import end_at_once


def main() -> int:
    """The `ophion` command, loaded in peace."""
    end_at_once()
    while_starting()
    from ophion.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
