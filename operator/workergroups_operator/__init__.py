"""The operator: from ResourcePools and WorkerGroups to RayClusters, and from what is true back to their conditions.

Read `reconcile` first: observe, desired, apply, status. It is woken by `handlers` through `work_queue`.
"""
