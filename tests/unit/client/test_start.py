"""What a command imports decides how long it takes: `status` of a namespace needs a few requests and few models."""

import json
import os
import subprocess
import sys

from tests.unit.client.api_server import POOLS, api_server, kubeconfig, listed
from tests.unit.client.fake_cluster import condition, group, pool

READY = {"conditions": [condition("Ready", "True")], "observedGeneration": 2}
GROUPS = POOLS.replace("resourcepools", "workergroups")
BOTH = {
    POOLS: listed("ResourcePool", pool("ppo", status=READY)),
    GROUPS: listed("WorkerGroup", group("ppo", status=READY)),
}
SLOW = {"kubernetes", "requests", "websocket", "workergroups_api.pod_settings"}
PROGRAM = """
import sys
from workergroups_cli.__main__ import main
try: main()
finally: print("imported:", *sys.modules)
"""


def test_status_imports_neither_the_kubernetes_package_nor_the_models_of_specs(tmp_path):
    path = tmp_path / "config"
    variables = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with api_server(answers=BOTH) as server:
        path.write_text(json.dumps(kubeconfig(server.url)))
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "status"],
            env={**variables, "KUBECONFIG": str(path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    printed, _, imported = done.stdout.partition("imported: ")
    assert [line.split()[:3] for line in printed.splitlines()[1:]] == [
        ["pool", "ppo", "True"],
        ["group", "ppo", "True"],
    ]
    assert "pydantic" in imported.split()
    assert SLOW & set(imported.split()) == set()
