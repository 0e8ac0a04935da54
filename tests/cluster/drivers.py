"""Drivers: a user's programs on the cluster's head."""

import ast
from typing import Any

from kubectl import Namespace

# The README's way takes seconds to start.
JOB = "ray job submit --log-color=false -- python"
AT_ONCE = "exec python"


def drive(namespace: Namespace, cluster: str, program: str, result: str, way: str = AT_ONCE) -> Any:
    """Run a program and return what the expression `result` is in the end."""
    text = f"import workergroups\n{program}\nprint('RESULT', repr({result}))\n"
    command = f"cat > /tmp/driver.py && {way} /tmp/driver.py"
    head = namespace.head(cluster)
    if way == JOB:
        namespace.run("wait", "--for=condition=Ready", f"pod/{head}", "--timeout=60s")
    output = namespace.run("exec", "-i", head, "--", "sh", "-c", command, stdin=text)
    (line,) = [line for line in output.splitlines() if line.startswith("RESULT ")]
    return ast.literal_eval(line.removeprefix("RESULT "))


def look(namespace: Namespace, cluster: str, *groups: str) -> Any:
    """What each rank of these groups says of its process."""
    return drive(namespace, cluster, "", f"[workergroups.attach(name).execute_all_sync('look') for name in {groups!r}]")
