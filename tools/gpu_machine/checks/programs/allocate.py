"""Each rank asks for some GiB of its device."""

import sys

import workergroups

print(workergroups.attach("gpu", timeout=60).allocate(int(sys.argv[1])))
