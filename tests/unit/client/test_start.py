"""What a command imports decides how long it takes: `status` of a namespace needs a few requests and few models."""

import subprocess
import sys
from importlib.util import find_spec

from tests.unit.client.api_server import POOLS, api_server, listed
from tests.unit.client.fake_cluster import condition, group, pool

READY = {"conditions": [condition("Ready", "True")], "observedGeneration": 2}
GROUPS = POOLS.replace("resourcepools", "workergroups")
BOTH = {
    POOLS: listed("ResourcePool", pool("ppo", status=READY)),
    GROUPS: listed("WorkerGroup", group("ppo", status=READY)),
}
SLOW = {"kubernetes", "requests", "websocket", "workergroups_api.pod_settings"}
OF_ONE_STATUS = {
    f"workergroups_client.{each}"
    for each in ("jobs.jobs", "jobs.kept_records", "pods.holders", "ray_cluster.connection", "ray_cluster.occupants")
}
PROGRAM = """
import sys
from workergroups_cli.__main__ import main
try: main()
finally: print("imported:", *sys.modules)
"""


def test_status_of_all_imports_neither_the_kubernetes_package_nor_models_of_specs_nor_what_one_needs(configure):
    assert [name for name in SLOW | OF_ONE_STATUS if find_spec(name) is None] == []
    with api_server(answers=BOTH) as server:
        configure(server.url)
        program = [sys.executable, "-c", PROGRAM, "status"]
        done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    printed, _, imported = done.stdout.partition("imported: ")
    assert [line.split()[:3] for line in printed.splitlines()[1:]] == [
        ["pool", "ppo", "True"],
        ["group", "ppo", "True"],
    ]
    assert "pydantic" in imported.split()
    assert (SLOW | OF_ONE_STATUS) & set(imported.split()) == set()
