"""Checks what the nodes of a pool have, and whether they reach each other. The command line judges the answers."""
