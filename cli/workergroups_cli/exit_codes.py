"""Exit codes of the command where it does not pass on the code of a job or of a command in a pod."""

FAILED = 1
"""For wrong usage, typer exits with 2."""
TIME_IS_UP = 124
"""The code of `timeout`."""
CANNOT_EXECUTE, COMMAND_NOT_FOUND = 126, 127
"""The codes of a shell."""
INTERRUPTED = 130
