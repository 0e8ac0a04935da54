"""Everything that WorkerGroups uses of Ray beyond its public API: no other module touches it but `default_worker`.

Tested with Ray 2.52.0, the oldest that a pool takes, and Ray 2.60.0, which our images have. When a newer Ray changes
one of its private parts, the change is made here:

- `gcs`: Ray's control service (the GCS), asked without a raylet and with deadlines. `records` reads what it returns.
- `cluster_state`: nodes, actors and tasks, as a driver or a rank asks for them. `death_cause` reads why an actor died.
- `key_value_store`: the GCS's key-value store, from a driver, a task or a rank.
- `actors`: the hidden parts of actor classes, handles and errors.
- `process`: what Ray holds in this process. `untrusted` keeps a driver from unpickling what others made.
- `start`: the functions of `ray start` that are replaced. `failed_start` stands in for a worker that cannot start.

Import the modules where they are needed: some import much of Ray.
"""
