"""Kubernetes' protocol of streams into containers (`v5.channel.k8s.io`): the numbers of its channels.

The kubernetes package defines the same numbers, but importing it takes a second, which `workergroups --help` must not
wait for.
"""

from __future__ import annotations

from typing import Final

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4

CLOSES_STDIN: Final = "v5.channel.k8s.io"
"""The first version of the protocol that can tell a command that its input has ended."""
