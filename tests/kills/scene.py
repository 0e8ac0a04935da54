"""The example's pool and group in their own namespace, and its driver as a job that is submitted again if it fails."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import yaml

from tests.truth.claim import claim, directory_of_heads
from tests.truth.judge import TRUE
from tests.truth.watch import GROUPS, POOLS, Seen, Watch
from tools.console import REPOSITORY, ToolError, run, say
from tools.demo.kubectl import Kubectl
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL, agent_name
from workergroups_api.vocabulary import Component, Container

from .judge import Held

NAME = "resilient-training"
EXAMPLE = REPOSITORY / "examples" / NAME
READY_SECONDS = 300
GONE_SECONDS = 120
JOB_SECONDS = 900
# A job is submitted again each time that its driver or the head is killed.
RETRIES = 1000
_LOG_LINES = 30


class Job:
    """A training: the command line that submits it, and follows it."""

    def __init__(self, namespace: str, name: str, directory: Path, steps: int) -> None:
        self.name = name
        self._log = directory / f"{name}.log"
        self._checkpoints = directory / "checkpoints" / name
        driver = ["python", "driver.py", "--attach", f"--checkpoints=/checkpoints/{name}", f"--steps={steps}"]
        options = [f"--name={name}", f"--retries={RETRIES}", f"--working-dir={EXAMPLE}", f"--namespace={namespace}"]
        command = [sys.executable, "-m", "workergroups_cli", "job", "submit", NAME, *options, "--", *driver]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def runs(self) -> bool:
        """Return whether the training has not ended."""
        return self._process.poll() is None

    def result(self) -> str:
        """Wait for the end of the training, and return its last checkpoint, in which each bit counts."""
        try:
            code = self._process.wait(JOB_SECONDS)
        except subprocess.TimeoutExpired:
            raise ToolError(f"{self.name} has not ended within {JOB_SECONDS} s:\n{self._tail()}") from None
        if code != 0:
            raise ToolError(f"{self.name} ended with {code}:\n{self._tail()}")
        return max(self._checkpoints.glob("[0-9]*/*.json")).read_text()

    def attempts(self) -> int:
        """Return how often the ranks were restored."""
        return len(list(self._checkpoints.glob("[0-9]*")))

    def output(self) -> str:
        """Return what the training has printed."""
        return self._log.read_text(errors="replace")

    def end(self) -> None:
        """End the command line."""
        self._process.kill()
        self._process.wait()

    def _tail(self) -> str:
        return "\n".join(self.output().splitlines()[-_LOG_LINES:])


class Scene:
    """A pool and a group that are ready, and that are watched."""

    def __init__(self) -> None:
        self.namespace = f"kills-{uuid.uuid4().hex[:8]}"
        self.kubectl = Kubectl({}, self.namespace)
        self.watch = Watch(self.namespace)
        self._directory = Path()
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        say(f"examples/{NAME} in namespace {self.namespace}")
        with ExitStack() as undo:
            self._directory = Path(tempfile.mkdtemp(prefix="kills-"))
            undo.callback(shutil.rmtree, self._directory, ignore_errors=True)
            (self._directory / "checkpoints").mkdir()
            (self._directory / "checkpoints").chmod(0o777)  # the pods run as another user
            undo.callback(self._remove)
            self.kubectl("create", "namespace", self.namespace)
            undo.enter_context(self.watch)
            # A head that is lost costs no rank.
            heads = undo.enter_context(directory_of_heads())
            undo.callback(self.kubectl, "delete", "persistentvolume", self.namespace, "--wait=false")
            for manifest in (*claim(self.namespace, self.namespace, heads), *self._manifests()):
                self.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))
            self.wait_until_ready()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._undo.close()

    def _manifests(self) -> list[dict[str, Any]]:
        """Return the example's manifests. The nodes of the local cluster share this machine's files."""
        pool, group = (yaml.safe_load((EXAMPLE / f"{name}.yaml").read_text()) for name in ("pool", "group"))
        directory = {"path": str(self._directory / "checkpoints"), "type": "Directory"}
        pool["spec"]["head"] = {"gcsStorage": {"claimName": self.namespace}}
        pool["spec"]["volumes"] = [{"mountPath": "/checkpoints", "hostPath": directory}]
        code = {name: (EXAMPLE / name).read_text() for name in ("checkpoints.py", "trainer.py")}
        metadata = {"name": group["spec"]["code"]["configMap"]["name"]}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": code}, pool, group]

    def _remove(self) -> None:
        say(f"removing namespace {self.namespace}")
        run(["kubectl", "delete", "namespace", self.namespace, "--ignore-not-found", "--wait=true", "--timeout=120s"])

    def train(self, name: str, steps: int) -> Job:
        """Submit a training."""
        job = Job(self.namespace, name, self._directory, steps)
        self._undo.callback(job.end)
        return job

    def evidence(self) -> str:
        """Return what somebody needs who looks for the cause of something wrong: statuses, and what Ray holds."""
        statuses = [json.dumps(self.body(kind)["status"]) for kind in ("resourcepool", "workergroup")]
        return "\n".join([*statuses, str(self.held())])

    def latest(self, plural: str) -> Seen:
        """Return the last observation of the pool or the group."""
        return self.watch.latest(plural, NAME)

    def history(self, plural: str, since: float) -> list[Seen]:
        """Return the observations of the pool or the group since a time."""
        return self.watch.history(plural, NAME, since)

    def ready_lives(self) -> dict[str, str]:
        """Return the lives of those of pool and group that are ready."""
        seen = {plural: self.latest(plural) for plural in (POOLS, GROUPS)}
        return {plural: each.life for plural, each in seen.items() if each.status == TRUE}

    def wait_until_ready(self) -> None:
        """Wait until pool and group are ready, also by the word of an agent that was replaced.

        Until that one has started, the statuses stay True for some seconds, and may be Unknown afterwards.
        """
        self._wait_until_said()
        self.kubectl("rollout", "status", f"deployment/{agent_name(NAME)}", f"--timeout={READY_SECONDS}s")
        self._wait_until_said()

    def _wait_until_said(self) -> None:
        if not self.watch.wait(lambda: len(self.ready_lives()) == 2, READY_SECONDS):
            raise ToolError(f"not ready within {READY_SECONDS} s: {self._reasons()}")

    def _reasons(self) -> str:
        seen = {plural: self.latest(plural) for plural in (POOLS, GROUPS)}
        return "; ".join(f"{plural}: {each.status} {each.reason}: {each.message}" for plural, each in seen.items())

    def pods(self, component: Component) -> list[str]:
        """Return the names of a component's pods that run and are not being deleted."""
        return sorted(str(pod["metadata"]["name"]) for pod in self._running(component))

    def nodes(self, component: Component) -> list[str]:
        """Return the nodes of these pods."""
        return [str(pod["spec"]["nodeName"]) for pod in self._running(component)]

    def _running(self, component: Component) -> list[dict[str, Any]]:
        selector = f"{CLUSTER_LABEL}={NAME},{COMPONENT_LABEL}={component}"
        pods = self.kubectl.json("pods", f"--selector={selector}")["items"]
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return [pod for pod in alive if pod["status"].get("phase") == "Running"]

    def shell(self, pod: str, container: Container, script: str) -> str:
        """Run a script in a pod."""
        return self.kubectl("exec", pod, f"--container={container}", "--", "sh", "-c", script)

    def body(self, kind: str) -> dict[str, Any]:
        """Return the pool or the group."""
        return dict(self.kubectl.json(kind, NAME))

    def held(self) -> Held:
        """Return what Ray holds."""
        (head,) = self.pods(Component.HEAD)
        command = ("exec", "-i", head, f"--container={Container.HEAD}", "--", "timeout", "60", "python", "-")
        output = self.kubectl(*command, stdin=(Path(__file__).parent / "held.py").read_text())
        (line,) = [line for line in output.splitlines() if line.startswith("RESULT ")]
        said = json.loads(line.removeprefix("RESULT "))
        return Held(tuple(said["placements"]), tuple(said["actors"]))

    def delete(self, kind: str) -> None:
        """Delete the pool or the group."""
        self.kubectl("delete", kind, NAME, "--wait=true", f"--timeout={GONE_SECONDS}s")

    def wait_until_gone(self) -> None:
        """Wait until no pod of the pool is left, so that it holds no devices."""
        self._eventually("pods are left", lambda: not self.kubectl.json("pods")["items"])

    def _eventually(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + GONE_SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise ToolError(f"{what} after {GONE_SECONDS} s: {self.kubectl('get', 'pods', '--output=wide')}")
            time.sleep(1)
