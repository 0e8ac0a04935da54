"""Pools, groups and jobs from outside the cluster; needs no Ray: ``pip install '.[cli]'``."""

from workergroups_client import *  # noqa: F403
from workergroups_client import __all__ as __all__
