"""Measure for how long a group does not answer after one of its ranks was killed: ``python -m bench.restart``."""
