"""Drivers: a user's programs on the cluster's head."""

import ast
from typing import Any

from tests.cluster.kubectl import Namespace

# The README's way takes seconds to start.
JOB = "ray job submit --log-color=false -- python"
AT_ONCE = "exec python"


def drive(namespace: Namespace, cluster: str, program: str, result: str, way: str = AT_ONCE) -> Any:
    """Run a program and return what the expression `result` is in the end."""
    text = f"import workergroups\n{program}\nprint('RESULT', repr({result}))\n"
    command = f"cat > /tmp/driver.py && {way} /tmp/driver.py"
    head = ready_head(namespace, cluster) if way == JOB else namespace.head(cluster)
    output = namespace.run("exec", "-i", head, "--", "sh", "-c", command, stdin=text)
    (line,) = [line for line in output.splitlines() if line.startswith("RESULT ")]
    return ast.literal_eval(line.removeprefix("RESULT "))


def ready_head(namespace: Namespace, cluster: str) -> str:
    """The head's pod, as soon as it is ready: Ray's job server may listen some seconds after the ranks."""
    head = namespace.head(cluster)
    namespace.run("wait", "--for=condition=Ready", f"pod/{head}", "--timeout=60s")
    return head


def look(namespace: Namespace, cluster: str, *groups: str) -> Any:
    """What each rank of these groups says of its process."""
    return drive(namespace, cluster, "", f"[workergroups.attach(name).execute_all_sync('look') for name in {groups!r}]")
