"""``python -m workergroups_cli``, where the command is not installed."""

from .app import main

main()
