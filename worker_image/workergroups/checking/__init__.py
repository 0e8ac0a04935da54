"""Checks what the nodes of a pool have, and whether they reach each other; `judgement` says what is wrong."""
