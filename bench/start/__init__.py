"""From `kubectl apply` to the first answer, beside KubeRay's `ready` for the same pods: ``make bench-start``."""
