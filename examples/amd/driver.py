"""Ask each rank for its devices."""

import workergroups

print("HIP_VISIBLE_DEVICES by rank:", workergroups.attach("amd", timeout=60).visible())
