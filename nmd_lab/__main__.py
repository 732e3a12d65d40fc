"""The command ``nmd-lab`` as ``python -m nmd_lab``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
