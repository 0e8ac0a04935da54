"""How the command ends where no job and no command in a pod has a code of its own."""

FAILED = 1
"""2 is for wrong usage; typer ends with it by itself."""
CANNOT_EXECUTE, COMMAND_NOT_FOUND = 126, 127
"""As a shell has them."""
INTERRUPTED = 130
