"""A driver that may start before its group is ready: GitOps applies everything at once."""

import workergroups

group = workergroups.attach("gitops", timeout=1800)
group.reset()
print('execute_all_sync("add", x=[1, 1, 1, 1]):', group.execute_all_sync("add", x=[1, 1, 1, 1]))
