"""What a driver on the head can do to the rest."""

from tests.cluster.drivers import look, ready_head
from tests.cluster.kubectl import group, pool

HOG = """
import time
held = []
while True:
    held.append(bytearray(b"x" * (16 << 20)))
    time.sleep(0.1)
"""


def test_a_driver_that_is_killed_for_memory_takes_neither_the_head_nor_ranks_with_it(namespace, clean):
    spec = {"accelerator": {"vendor": "none"}, "head": {"resources": {"requests": {"memory": "1Gi"}}}}
    namespace.apply(pool("frugal", **spec), group("frugal"))
    namespace.until_ready("workergroup", "frugal")
    before = look(namespace, "frugal", "frugal")
    run = "cat > /tmp/hog.py && ray job submit -- python /tmp/hog.py 2>&1 || true"
    said = namespace.run("exec", "-i", ready_head(namespace, "frugal"), "--", "sh", "-c", run, stdin=HOG)
    # Ray's own monitor, before the kernel, which would end the head as well.
    assert "Ray killed 1 worker(s) based on the killing policy" in said, said
    head = namespace.get("pod", namespace.head("frugal"))
    assert [status["restartCount"] for status in head["status"]["containerStatuses"]] == [0]
    assert look(namespace, "frugal", "frugal") == before
    assert namespace.get("workergroup", "frugal")["status"]["incarnation"] == 1
