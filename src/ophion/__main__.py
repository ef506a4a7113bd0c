"""`python -m ophion` is the `ophion` command."""

import sys

from ophion.runtime.garbage import while_starting


def main() -> int:
    """The `ophion` command, loaded in peace."""
    while_starting()
    from ophion.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
