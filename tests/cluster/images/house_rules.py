"""A module that an image has on its own PYTHONPATH."""

GREETING = "from the house"
