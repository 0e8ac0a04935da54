"""The executor: a driver in the head's container, which carries out the orders that it finds in the GCS.

Start reading at `loop`: it observes Ray, decides (pure), acts and reports. `supervise` keeps it running.
"""
