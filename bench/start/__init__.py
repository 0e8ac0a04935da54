"""From `kubectl apply` to the first answer, compared with KubeRay's `ready` for the same pods: ``make bench-start``."""
