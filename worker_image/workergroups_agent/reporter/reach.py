"""How long the API server has answered without a failure, by the renewals of the Lease."""


class Reach:
    """What is known of the API server's answers. A status cannot be written while nothing can."""

    def __init__(self) -> None:
        # The first and the latest success since the latest failure; None after a failure.
        self._since: float | None = None
        self._latest = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the API server answered the latest request."""
        return self._since is not None

    def answered(self, now: float) -> None:
        """Note an answer."""
        self._since = now if self._since is None else self._since
        self._latest = now

    def failed(self) -> None:
        """Note that there was no answer."""
        self._since = None

    def has_lasted(self, seconds: float, since: float) -> bool:
        """Return whether the API server has answered for more than that time, counted from `since` at the earliest."""
        return self._since is not None and self._latest - max(self._since, since) > seconds
