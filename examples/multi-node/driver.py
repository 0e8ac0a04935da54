"""Call one step of all ranks together."""

import workergroups

group = workergroups.attach("ray-verl-cluster", timeout=600)
with group.deadline(120):
    sums = group.step()
assert sums == [sum(range(group.world_size))] * group.world_size, sums
print(f"{group.world_size} ranks have summed up their numbers: {sums[0]:g}")
