"""Print what each rank found in its environment."""

import workergroups

group = workergroups.attach("secrets")
print(group.settings())
