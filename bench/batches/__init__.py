"""How long a batch takes from one group's devices to another's, beside Ray Direct Transport and host memory."""
