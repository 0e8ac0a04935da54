"""Each rank of the group has its own device, and sums over NCCL; the last line says what was seen."""

import workergroups

group = workergroups.attach("gpu", timeout=60)
ranks = group.look()
for each in ranks:
    print(each)
total = group.total()  # where they meet
expected = sum(range(1, group.world_size + 1))
print(f"{len({each['uuid'] for each in ranks})} devices, sums {total}, {group.speed()[0]}")
assert len({each["uuid"] for each in ranks}) == group.world_size
assert total == [expected] * group.world_size
