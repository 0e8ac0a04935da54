"""What goes wrong for a user of the client; each message is a whole sentence that says what to do where it can."""

from __future__ import annotations


class ClientError(Exception):
    """Something that the user can understand and mend; the base of the others."""


class UnreachableError(ClientError):
    """The API server, or Ray behind it, did not answer."""


class NotFoundError(ClientError):
    """There is nothing of that name."""


class ConflictError(ClientError):
    """Somebody else has a hand in it."""


class DeadlineError(ClientError):
    """What was waited for did not come in time."""


class CannotBeReadyError(ClientError):
    """What is waited for will not come by waiting."""
