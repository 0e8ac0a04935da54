"""Notice on a worker that its head was lost and another has come.

A raylet notices it when it reaches the new head, which takes gRPC up to 45 s: it asks for the address of a name once in
30 s at most. A connection to the head breaks at once, and the kernel watches it, so that nothing runs meanwhile.
"""

import socket
import time
from collections.abc import Callable
from contextlib import suppress

from workergroups_agent.listening import TIMEOUT_SECONDS, host_and_port, wait_for_gcs
from workergroups_common.backoff import Backoff

# If the head's node is gone, nothing ends the connection. Then the kernel probes it, for these seconds in all.
_ASKS = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 3, socket.TCP_KEEPCNT: 3}
# A head of another version of Ray may never announce a session.
_PAUSES = Backoff(first=0.5, last=60.0)


def wait_for_next_head(address: str, session: Callable[[], str | None]) -> None:
    """Return when a head of another session listens at HOST:PORT; wait for ever if there is none.

    Args:
        address: Where the GCS listens, by a name that leads to the next head, too.
        session: Asks the GCS there for its session; None if it has not announced one.
    """
    ours: str | None = None
    unanswered = 0
    while True:
        wait_for_gcs(address)
        with suppress(OSError), _connection(address) as connection:
            now = session()  # a head that comes after this question ends the connection
            ours = ours or now
            if now not in (ours, None):
                return
            unanswered = 0 if now else unanswered + 1
            if now:
                _wait_for_end(connection)
        time.sleep(_PAUSES.after(unanswered + 1))


def _connection(address: str) -> socket.socket:
    connection = socket.create_connection(host_and_port(address), timeout=TIMEOUT_SECONDS)
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _ASKS.items():
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection


def _wait_for_end(connection: socket.socket) -> None:
    """Return when the connection ends; the GCS ends those over which nothing comes, after minutes."""
    while connection.recv(4096):
        pass
