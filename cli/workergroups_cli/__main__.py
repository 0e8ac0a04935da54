"""The entry of the command, also as ``python -m workergroups_cli``. Its imports come after what makes them faster."""

from __future__ import annotations

import atexit
import gc

_SELDOM = 200_000
"""How many new objects start a search for garbage. A command imports about 70,000 of them; Python's default is 700."""


def main() -> None:
    """Run the command."""
    # Searches in what was just imported, and again before the process ends, take a quarter of a short command's time.
    gc.set_threshold(_SELDOM)
    atexit.register(gc.freeze)
    from .app import main as run

    run()


if __name__ == "__main__":
    main()
