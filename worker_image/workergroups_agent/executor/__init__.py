"""The executor: a driver in the head's container, which carries out the orders that it finds in the GCS.

`supervise` keeps it running. `loop` is the place to begin: observe Ray, decide (pure), act, give an account.
"""
