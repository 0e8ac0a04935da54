"""A script that prepares head and nodes before Ray starts."""

from tests.cluster.drivers import drive
from tests.cluster.kubectl import config_map, group, pool

GUEST = """
import sys, prepared, workergroups

class Guest(workergroups.Worker):
    def greet(self):
        return prepared.GREETING, sys.prefix
"""
PREPARE = """
packages=$(python3 -c 'import ray; print(ray.__path__[0].removesuffix("/ray"))')
python3 -m venv --without-pip /venv
cd /venv/lib/python3*/site-packages
echo "$packages" > image.pth
echo 'GREETING = "from the volume"' > prepared.py
"""
PREPARED = {
    "accelerator": {"vendor": "none"},
    "volumes": [{"mountPath": "/venv", "emptyDir": {}}],
    "env": [{"name": "PATH", "value": "/venv/bin:/opt/ray/bin:/usr/local/bin:/usr/bin:/bin"}],
}


def test_ranks_run_in_an_environment_that_the_script_has_created(namespace, clean):
    namespace.apply(
        config_map("guest", guest=GUEST),
        pool("made", setup={"script": "echo the index is away >&2; exit 7"}, **PREPARED),
        group("made", worker={"class": "guest.Guest"}, code={"configMap": {"name": "guest"}}),
    )
    failed = namespace.until_said("made", "the index is away")
    assert failed["reason"] == "SetupFailed"
    assert "exit code 7" in failed["message"]

    namespace.apply(pool("made", setup={"script": PREPARE}, **PREPARED))
    namespace.until_ready("workergroup", "made")
    seen = drive(namespace, "made", "", "workergroups.attach('made').execute_all_sync('greet')")
    assert seen == [("from the volume", "/venv")] * 2
