"""A program that tries to reach a port of a pod from another one."""

DIAL = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
except OSError as error:
    print(type(error).__name__)
"""


def dial(address, port):
    """What follows the pod in an `exec`; it prints why it was refused."""
    return "--", "python", "-c", DIAL, address, str(port)
