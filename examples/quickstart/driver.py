"""A driver: attach to the group by its name and call its ranks. It runs as a Ray job on the pool's cluster."""

import workergroups

group = workergroups.attach("quickstart", timeout=60)
# The ranks keep running when a driver ends. Reset them, so that each driver finds the same values.
group.reset()

print("world_size:", group.world_size)
print("worker_names:", group.worker_names)
print("devices:", group.devices())
print('execute_all_sync("add", x=[1, 1, 1, 1]):', group.execute_all_sync("add", x=[1, 1, 1, 1]))
print("add_to_all(10), ONE_TO_ALL:", group.add_to_all(10))
print("read_rank_zero(), RANK_ZERO:", group.read_rank_zero())
