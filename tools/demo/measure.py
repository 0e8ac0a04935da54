"""How much memory the operator and the quickstart's agent use, as their control groups count it."""

from tools.demo.kubectl import Kubectl

# The working set, as `kubectl top` reports it: usage without the file cache that can be dropped at once.
# First control groups v2, then v1.
_READ = """
cd /sys/fs/cgroup
if [ -e memory.current ]; then cat memory.current; grep '^inactive_file ' memory.stat
else cd memory; cat memory.usage_in_bytes; grep '^total_inactive_file ' memory.stat; fi
"""
_MIB = 1024 * 1024


def report(operator: Kubectl, demo: Kubectl) -> list[str]:
    """Return one line for each pod."""
    agent = [working_set(demo, "deployment/quickstart-agent", container) for container in ("observer", "reporter")]
    return [
        f"operator {working_set(operator, 'deployment/workergroups-operator', 'operator') / _MIB:.0f} MiB",
        f"agent {sum(agent) / _MIB:.0f} MiB (observer {agent[0] / _MIB:.0f}, reporter {agent[1] / _MIB:.0f})",
        "(working sets, read in the containers' control groups: usage less inactive_file)",
    ]


def working_set(kubectl: Kubectl, workload: str, container: str) -> int:
    """Return the bytes that a container uses."""
    usage, _, inactive = kubectl("exec", workload, f"--container={container}", "--", "sh", "-c", _READ).split()
    return int(usage) - int(inactive)
