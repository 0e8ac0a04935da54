"""What the group's `envFrom` brings."""

import os


def learning_rate() -> float:
    """Return the value from the ConfigMap."""
    return float(os.environ["HP_LEARNING_RATE"])
