"""The operator: from ResourcePools and WorkerGroups to RayClusters, and from what is true back to their conditions.

Read `reconcile` first: it lists the eight steps of the loop, and each step's module names its number. `handlers`
watches and fills the queue, `work_queue` calls `reconcile`.
"""
