"""A soak: the operator reads without end, and its memory must not rise."""
