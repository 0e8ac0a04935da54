"""What people run by hand on a checkout: the demo, and the clusters that it and the tests run on.

A package, not only a folder, so that no installed package of this name comes before it.
"""
