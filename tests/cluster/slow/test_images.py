"""Two images on one cluster that do not fit each other."""

import os

from tests.cluster.kubectl import pool

OLDEST = os.environ["OLDEST_RAY_IMAGE"]
CPUS = {"vendor": "none"}


def test_an_image_with_another_ray_than_the_clusters_is_reported_and_the_others_continue(namespace, clean):
    namespace.apply(pool("first", processes=1, clusterName="shared", accelerator=CPUS))
    namespace.until_ready("resourcepool", "first")
    namespace.apply(pool("second", processes=1, clusterName="shared", accelerator=CPUS, image=OLDEST))
    said = namespace.until_said("second", "Ray 2.52.0 on Python 3.11, but the head of cluster shared runs Ray")
    assert said["reason"] == "RayVersionConflict"
    assert namespace.ready("resourcepool", "first")["status"] == "True"
