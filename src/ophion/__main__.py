"""`python -m ophion` is the `ophion` command."""

import sys

from ophion.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
