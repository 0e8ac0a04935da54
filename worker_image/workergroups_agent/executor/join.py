"""Become a node of the Ray cluster, one without resources, so that nothing is scheduled here by chance."""

import logging
import socket
import subprocess
import time

LOGGER = logging.getLogger(__name__)

POLL_SECONDS = 0.2
SAY_SO_SECONDS = 10.0
START_SECONDS = 60.0
# Ray's smallest; the agent puts nothing into the store but a launch with its ConfigMap's text.
OBJECT_STORE_BYTES = 80 * 1024 * 1024


def wait_for_gcs(address: str) -> None:
    """Wait until the head's GCS takes connections: `ray start` against a dead address would block.

    There is no deadline here: the operator has one, and says in the pool's conditions what is waited for.
    """
    host, _, port = address.rpartition(":")
    began = said = time.monotonic()
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=2):
                return
        except OSError as error:
            if time.monotonic() - said > SAY_SO_SECONDS:
                said = time.monotonic()
                LOGGER.info("waiting for the GCS at %s for %.0f s: %s", address, said - began, error)
        time.sleep(POLL_SECONDS)


def start_raylet(address: str) -> None:
    """Start Ray's processes beside this one. They end with the container, and this process when they do.

    Neither `--block` nor a log monitor: nobody prints here, and each is a Python process of its own.

    Raises:
        subprocess.SubprocessError: Ray did not start within a minute, or says that it cannot.
    """
    subprocess.run(
        [
            "ray",
            "start",
            f"--address={address}",
            "--num-cpus=0",
            "--num-gpus=0",
            f"--object-store-memory={OBJECT_STORE_BYTES}",
            "--include-log-monitor=false",
            "--disable-usage-stats",
        ],
        check=True,
        timeout=START_SECONDS,
    )
