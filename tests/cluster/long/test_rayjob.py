"""examples/gitops on a cluster: KubeRay runs the driver of a RayJob on the pool's cluster."""

from pathlib import Path

from tests.cluster.kubectl import group, pool

EXAMPLE = Path(__file__).parents[3] / "examples" / "gitops"
SECONDS = 300


def configmap():
    files = {name: (EXAMPLE / name).read_text() for name in ("accumulator.py", "driver.py")}
    # As many values as the pool has processes.
    files["driver.py"] = files["driver.py"].replace("[1, 1, 1, 1]", "[1, 1]")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gitops-code"}, "data": files}


def rayjob():
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "gitops-run-1"},
        "spec": {"clusterSelector": {"ray.io/cluster": "gitops"}, "entrypoint": "python /code/driver.py"},
    }


def test_a_rayjob_that_comes_first_runs_the_driver_when_the_group_is_ready(namespace, clean):
    code = {
        "code": {"configMap": {"name": "gitops-code", "items": [{"key": "accumulator.py", "path": "accumulator.py"}]}}
    }
    volumes = [{"mountPath": "/code", "configMap": {"name": "gitops-code"}}]
    namespace.apply(rayjob())
    namespace.apply(configmap(), pool("gitops", volumes=volumes), group("gitops", **code))
    status = namespace.until(
        lambda: namespace.get("rayjob", "gitops-run-1").get("status", {}),
        lambda seen: seen.get("jobStatus") in ("SUCCEEDED", "FAILED"),
        SECONDS,
    )
    assert status["jobStatus"] == "SUCCEEDED", status
    # The submitter follows the driver's lines, and may print them after KubeRay knows the result.
    namespace.until(lambda: namespace.run("logs", "job/gitops-run-1"), lambda lines: "[1.0, 2.0]" in lines, 30)
    namespace.run("delete", "rayjob", "gitops-run-1")
    assert namespace.ready("workergroup", "gitops")["status"] == "True"
