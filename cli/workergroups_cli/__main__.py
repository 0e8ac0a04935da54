"""``python -m workergroups_cli``, for when the command is not installed."""

from .app import main

main()
