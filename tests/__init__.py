"""The tests, and what they run in: a simulated world, odd cases and faults.

A package, not only a folder, so that no installed package of this name comes before it.
"""
