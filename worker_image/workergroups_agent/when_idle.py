"""Run another program as soon as a CPU of this machine is idle: `python3 when_idle.py SECONDS PROGRAM ARGUMENT...`.

The program starts after that many seconds at the latest. This needs only the standard library, since several of these
processes wait while a Ray cluster starts.
"""

import os
import sys

from workergroups.node.idle import wait_for_idle_cpu

if __name__ == "__main__":
    wait_for_idle_cpu(float(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
