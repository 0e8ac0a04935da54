"""The entry of the command, also as ``python -m workergroups_cli``. Its imports come after what makes them faster."""

from __future__ import annotations

import atexit
import gc
import sys

_SELDOM = 200_000
"""How many new objects start a search for garbage. A command imports about 70,000 of them; Python's default is 700."""


def main() -> None:
    """Run the command."""
    # Searches in what was just imported, and again before the process ends, take a quarter of a short command's time.
    gc.set_threshold(_SELDOM)
    atexit.register(gc.freeze)
    try:
        from .app import main as run
    except ModuleNotFoundError as error:
        # As after an installation of the library alone, which has this entry, too.
        sys.exit(f"workergroups: {error.name} is missing: pip install '.[cli]' in a clone of the repository")
    run()


if __name__ == "__main__":
    main()
