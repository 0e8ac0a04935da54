"""Bytes of tensors that one process reads from the memory of another, without its help where that is possible."""
