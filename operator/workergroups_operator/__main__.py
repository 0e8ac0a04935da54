"""Run the operator: `python -m workergroups_operator`."""

import logging

import kopf

from workergroups_operator import handlers  # noqa: F401 (registers the handlers with kopf)

LIVENESS_ENDPOINT = "http://0.0.0.0:8080/healthz"


def main() -> None:
    """Serve all namespaces until stopped."""
    kopf.configure(verbose=False)
    for chatty in ("aiohttp.access", "kopf.objects"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    kopf.run(standalone=True, clusterwide=True, liveness_endpoint=LIVENESS_ENDPOINT)


if __name__ == "__main__":
    main()
