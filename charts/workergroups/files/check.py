"""Run by `helm test` in a pod: check that our kinds and KubeRay's are served, and that the operator is available."""

import sys

from kubernetes import client, config

KINDS = {
    ("workergroups.dev", "v1alpha1"): {"ResourcePool", "WorkerGroup"},
    ("ray.io", "v1"): {"RayCluster"},
}


def missing_kinds() -> list[str]:
    """Return the kinds that the API server does not serve. Everybody is allowed to ask."""
    missing = []
    for (group, version), wanted in KINDS.items():
        try:
            served = {each.kind for each in client.CustomObjectsApi().get_api_resources(group, version).resources}
        except client.ApiException as error:
            if error.status != 404:
                raise
            served = set()
        missing += [f"{group}/{version} {kind}" for kind in sorted(wanted - served)]
    return missing


def is_available(name: str, namespace: str) -> bool:
    """Return whether the operator's Deployment is available."""
    status = client.AppsV1Api().read_namespaced_deployment(name, namespace).status
    return any(each.type == "Available" and each.status == "True" for each in status.conditions or ())


def main(name: str, namespace: str) -> int:
    """Print what is wrong. Return 0 if nothing is, else 1."""
    config.load_incluster_config()
    troubles = [f"the API server does not serve {kind}" for kind in missing_kinds()]
    if not is_available(name, namespace):
        troubles.append(f"Deployment {namespace}/{name} is not available")
    print("\n".join(troubles) or "the kinds are served and the operator is available")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
