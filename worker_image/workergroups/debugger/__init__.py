"""`breakpoint()` and post-mortem debugging in ranks: a rank that stops announces where, and waits for a debugger.

It listens on its loopback only. To reach it, a user needs access to its pod, such as a tunnel through the API server.
"""
