"""Call three groups over the same processes from one driver."""

import workergroups

for name, x in (("whole", 1), ("half", 2), ("merged", 3)):
    group = workergroups.attach(name, timeout=60)
    group.reset()
    print(f"{name}:", group.execute_all_sync("add", x=[x] * group.world_size))
