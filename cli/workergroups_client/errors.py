"""Errors that users meet. Each message says what happened, to which object, and where possible what to do next."""

from __future__ import annotations


class ClientError(Exception):
    """An error that the user can understand and fix; the base of the others."""


class UnreachableError(ClientError):
    """The API server, or Ray behind it, did not answer."""


class UnauthorizedError(ClientError):
    """The API server does not accept the login."""


class ForbiddenError(ClientError):
    """The user lacks a right."""


class NotFoundError(ClientError):
    """There is no object of that name."""


class NotInstalledError(NotFoundError):
    """The cluster does not know the kind: what defines it is not installed."""


class NotRunningError(NotFoundError):
    """The object exists, but what should run for it does not run now."""


class ConflictError(ClientError):
    """Another client holds what this one wants to change."""


class DeadlineError(ClientError):
    """The time is up, and what the client waited for has not happened."""


class NotSeenError(DeadlineError):
    """The operator has not seen the object for a while, so that waiting longer does not help."""


class CannotBeReadyError(ClientError):
    """The object will not become ready, however long one waits."""
