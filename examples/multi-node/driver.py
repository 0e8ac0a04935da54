"""What the ranks of each node have, and whether all of them add up."""

import workergroups

group = workergroups.attach("ray-verl-cluster", timeout=600)
for rank, found in enumerate(group.look()):
    print(f"rank {rank}:", ", ".join(f"{name}: {value}" for name, value in found.items()))
with group.deadline(120):
    results = group.all_reduce(256)
expected = sum(range(group.world_size))
assert all(result["sum of ranks"] == expected for result in results), results
print(f"{group.world_size} ranks, all-reduce of 256 MiB at {min(each['GiB/s'] for each in results):.2f} GiB/s")
