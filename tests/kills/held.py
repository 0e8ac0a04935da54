"""Run on the head: prints as JSON which placement groups and named actors of ours Ray holds."""

import json

import ray
from ray.util import list_named_actors, placement_group_table

ray.init(address="auto", logging_level="ERROR", log_to_driver=False)
placements = [each["name"] for each in placement_group_table().values() if each["state"] != "REMOVED"]
actors = [each["name"] for each in list_named_actors(all_namespaces=True) if each["namespace"] == "workergroups"]
print("RESULT", json.dumps({"placements": placements, "actors": actors}))
