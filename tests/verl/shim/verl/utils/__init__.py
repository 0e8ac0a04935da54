"""verl's own, where its tests use more than the single controller and DataProto."""

import os

__path__.append(os.environ["VERL_UTILS"])
