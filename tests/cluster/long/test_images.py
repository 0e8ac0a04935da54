"""Images that users have: with Ray and nothing of ours, too old, and without Ray."""

import os

from tests.cluster.drivers import drive
from tests.cluster.kubectl import config_map, group, pool
from workergroups.client import Cluster, Pool

OLDEST, TOO_OLD, OURS = (os.environ[f"{name}_IMAGE"] for name in ("OLDEST_RAY", "TOO_OLD_RAY", "OPERATOR"))
CPUS = {"vendor": "none"}

GUEST = """
import house_rules, ray, workergroups

class Guest(workergroups.Worker):
    def greet(self):
        return house_rules.GREETING, ray.__version__, self.rank
"""


def test_an_image_with_the_oldest_ray_and_nothing_of_ours_is_served(namespace, clean):
    namespace.apply(
        config_map("guest", guest=GUEST),
        pool("mine", image=OLDEST, accelerator=CPUS),
        group("mine", worker={"class": "guest.Guest"}, code={"configMap": {"name": "guest"}}),
    )
    namespace.until_ready("workergroup", "mine")
    assert namespace.get("resourcepool", "mine")["status"]["rayVersion"] == "2.52.0"
    seen = drive(namespace, "mine", "", "workergroups.attach('mine').execute_all_sync('greet')")
    assert seen == [("from the house", "2.52.0", 0), ("from the house", "2.52.0", 1)]
    checked = Pool("mine", Cluster(namespace.name)).check()
    assert checked.is_well, checked.findings
    # Kubelet's probes pass, too: a pod whose probes fail lives for ten minutes.
    namespace.run("wait", "pods", "--all", "--for=condition=Ready", "--timeout=60s")


def test_an_image_that_cannot_be_served_says_what_it_lacks(namespace, clean):
    namespace.apply(
        pool("too-old", image=TOO_OLD, accelerator=CPUS),
        pool("no-ray", image=OURS, accelerator=CPUS),
    )
    old = namespace.until_said("too-old", "the image has Ray 2.9.3, and needs 2.52 or later, the first with token auth")
    none = namespace.until_said("no-ray", "the image has no Ray")
    assert (old["reason"], none["reason"]) == ("ImageUnfit", "ImageUnfit")
