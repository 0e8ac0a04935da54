"""The nodes to which the simulation binds pods, and in which rack each is; the last one is in none."""

RACK = "simulation/rack"
NODES = {"node-1": {RACK: "a"}, "node-2": {RACK: "b"}, "node-3": {RACK: "a"}, "node-4": {}}
