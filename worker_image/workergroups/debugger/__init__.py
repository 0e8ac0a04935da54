"""`breakpoint()` and post-mortem debugging in ranks: a rank that stops says where, and waits for who comes in.

It listens on its own loopback only: who reaches it has been let into its pod, as by a tunnel through the API server, or
is on the same machine.
"""
