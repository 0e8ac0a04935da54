"""The faults, and actions that are not faults: how to cause each, and what the status must report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from tools.demo.kubectl import Kubectl
from workergroups_api.vocabulary import Component, Container

from . import machine, operators
from .stage import Answer, Stage
from .watch import GROUPS, POOLS

BOTH = (POOLS, GROUPS)
# For a shell in the head's container; it fails if there is no GCS.
SIGNAL_GCS = """
for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = gcs_server ] && kill -{} ${{p#/proc/}} && found=yes; done; [ "$found" ]
"""

Act = Callable[[Stage, Answer, ExitStack], None]


@dataclass(frozen=True)
class Fault:
    """Something that makes the status wrong. `act` causes it, and registers with `undo` what must end it."""

    name: str
    title: str
    bound: float
    act: Act
    says_so: tuple[str, ...] = BOTH
    """The objects whose Ready must no longer be True."""
    ends: tuple[str, ...] = ()
    """The objects whose processes the fault ended: they must not be Ready again before these are recreated."""
    keeps_ranks: bool = False
    """Whether the ranks must be the same after the fault as before."""
    comes_back: bool = False
    """Whether the group must become Ready again automatically, with the same ranks or new ones."""
    needs_local: bool = False


@dataclass(frozen=True)
class NoFault:
    """An action that changes neither pool nor ranks, so that Ready must stay."""

    name: str
    title: str
    act: Act
    watched_seconds: float
    """For how long to watch Ready afterwards."""
    may_be_unknown: bool = False
    needs_local: bool = False
    has_claim: bool = False
    """Whether the GCS of the pool's head keeps its state on a claim."""


def _edit_deadline(stage: Stage, _answer: Answer, _undo: ExitStack) -> None:
    for kind in ("resourcepool", "workergroup"):
        stage.patch(kind, {"progressDeadlineSeconds": 500 + int(time.monotonic()) % 100})


def _delete(component: Component, *options: str) -> Act:
    def act(stage: Stage, _answer: Answer, _undo: ExitStack) -> None:
        stage.kubectl("delete", "pod", stage.pod(component), "--wait=false", *options)

    return act


_NOW = ("--grace-period=0", "--force")


def _replace_agent(stage: Stage, answer: Answer, undo: ExitStack) -> None:
    """Delete the agent's pod; return when the new one is ready."""
    old = stage.pod(Component.AGENT)
    _delete(Component.AGENT, *_NOW)(stage, answer, undo)
    new = stage.another_pod(Component.AGENT, old)
    stage.kubectl("wait", "pod", new, "--for=condition=Ready", "--timeout=60s")


def evict(kubectl: Kubectl, namespace: str, pod: str) -> None:
    """Evict a pod, as the drain of a node does."""
    metadata = {"name": pod, "namespace": namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    kubectl("create", f"--raw={path}", "--filename=-", stdin=json.dumps(eviction))


def _evict(stage: Stage, _answer: Answer, _undo: ExitStack) -> None:
    evict(stage.kubectl, stage.namespace, stage.pod(Component.WORKER))


def _kill_rank(stage: Stage, answer: Answer, _undo: ExitStack) -> None:
    stage.shell(Component.WORKER, f"kill -9 {answer.ranks[-1].pid}")


def _delete_agent_and_kill_rank(stage: Stage, answer: Answer, undo: ExitStack) -> None:
    _delete(Component.AGENT, *_NOW)(stage, answer, undo)
    _kill_rank(stage, answer, undo)


def _kill_rank_while_operator_is_away(stage: Stage, answer: Answer, undo: ExitStack) -> None:
    """Kill a rank while no operator runs; return when the operator's container has started again."""
    kubectl, all_ = operators.kubectl(), f"--replicas={operators.REPLICAS}"
    undo.callback(kubectl, "rollout", "status", operators.DEPLOYMENT, "--timeout=120s")
    undo.callback(kubectl, "scale", operators.DEPLOYMENT, all_)
    kubectl("scale", operators.DEPLOYMENT, "--replicas=0")
    kubectl("wait", "pod", operators.PODS, "--for=delete", "--timeout=60s")
    _kill_rank(stage, answer, undo)
    time.sleep(3)
    kubectl("scale", operators.DEPLOYMENT, all_)
    kubectl("wait", "pod", operators.PODS, "--for=create", "--timeout=60s")
    started = "jsonpath={.status.containerStatuses[0].state.running.startedAt}"
    kubectl("wait", "pod", operators.PODS, f"--for={started}", "--timeout=60s")


def _stop_operator_and_kill_rank(stage: Stage, answer: Answer, undo: ExitStack) -> None:
    """As if its node was lost: it does not give its Lease back. When it goes on, it sees that another one serves."""
    undo.callback(operators.kubectl(), "rollout", "status", operators.DEPLOYMENT, "--timeout=120s")
    machine.stop_in_container(operators.serving_container(), "workergroups_operator", undo)
    _kill_rank(stage, answer, undo)


def _restart_operator(_stage: Stage, _answer: Answer, undo: ExitStack) -> None:
    kubectl = operators.kubectl()
    kubectl("delete", "pod", operators.PODS, "--wait=true")
    kubectl("rollout", "status", operators.DEPLOYMENT, "--timeout=120s")


def _stop_gcs(stage: Stage, _answer: Answer, undo: ExitStack) -> None:
    undo.callback(stage.shell, Component.HEAD, SIGNAL_GCS.format("CONT"))
    stage.shell(Component.HEAD, SIGNAL_GCS.format("STOP"))


def _kill_gcs(stage: Stage, _answer: Answer, _undo: ExitStack) -> None:
    stage.shell(Component.HEAD, SIGNAL_GCS.format("KILL"))


def _kill_head_container(stage: Stage, _answer: Answer, _undo: ExitStack) -> None:
    machine.kill_container(_container_id(stage, Component.HEAD, Container.HEAD))


def _container_id(stage: Stage, component: Component, container: Container) -> str:
    statuses = stage.pod_manifest(component)["status"]["containerStatuses"]
    (container_id,) = [each["containerID"] for each in statuses if each["name"] == container]
    return str(container_id)


def _stop(component: Component, container: Container, program: str) -> Act:
    def act(stage: Stage, _answer: Answer, undo: ExitStack) -> None:
        machine.stop_in_container(_container_id(stage, component, container), program, undo)

    return act


_stop_observer = _stop(Component.AGENT, Container.OBSERVER, "workergroups_agent.observer")


def _stop_executor(stage: Stage, _answer: Answer, undo: ExitStack) -> None:
    with undo:
        machine.stop_in_container(
            _container_id(stage, Component.HEAD, Container.HEAD), "workergroups_agent.executor", undo
        )
        time.sleep(20)


def _worker_node(stage: Stage) -> str:
    return str(stage.pod_manifest(Component.WORKER)["spec"]["nodeName"])


def _stop_node(stage: Stage, _answer: Answer, undo: ExitStack) -> None:
    machine.stop_node(_worker_node(stage), undo)


def _cut_node_off(stage: Stage, _answer: Answer, undo: ExitStack) -> None:
    machine.cut_off(_worker_node(stage), undo)


# By it, an administrator says that the node is really gone: Kubernetes removes its pods once it is NotReady.
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def _lose_heads_node(stage: Stage, _answer: Answer, undo: ExitStack) -> None:
    """Lose the node of the head for good; return when the head's next pod runs on another one."""
    old, node = stage.pod(Component.HEAD), str(stage.pod_manifest(Component.HEAD)["spec"]["nodeName"])
    machine.lose_node(node, undo)
    undo.callback(stage.kubectl, "taint", "node", node, f"{_OUT_OF_SERVICE}-")
    stage.kubectl("taint", "node", node, f"{_OUT_OF_SERVICE}=nodeshutdown:NoExecute")
    new = stage.another_pod(Component.HEAD, old)
    stage.kubectl("wait", "pod", new, "--for=jsonpath={.status.phase}=Running", "--timeout=120s")


def _stop_api_server(_stage: Stage, _answer: Answer, undo: ExitStack) -> None:
    with undo:
        machine.stop_daemon("kube-apiserver", undo)
        time.sleep(20)


NO_FAULTS = (
    NoFault("deadline", "deadlines edited", _edit_deadline, 6),
    NoFault("agent", "agent pod deleted", _replace_agent, 6, may_be_unknown=True),
    NoFault("operator", "both operators restarted", _restart_operator, 10),
    NoFault("executor", "executor stopped for 20 s", _stop_executor, 10, needs_local=True),
    NoFault("api-server", "API server stopped for 20 s", _stop_api_server, 20, needs_local=True),
    NoFault("gcs-killed", "GCS killed", _kill_gcs, 15, may_be_unknown=True),
    NoFault(
        "head-container", "head's container killed", _kill_head_container, 15, may_be_unknown=True, needs_local=True
    ),
    NoFault(
        "head-claim",
        "head pod deleted, whose GCS has a claim",
        _delete(Component.HEAD, *_NOW),
        15,
        may_be_unknown=True,
        needs_local=True,
        has_claim=True,
    ),
    NoFault(
        "head-node",
        "head's node lost, whose GCS has a claim",
        _lose_heads_node,
        15,
        may_be_unknown=True,
        needs_local=True,
        has_claim=True,
    ),
)
FAULTS = (
    Fault("observer", "observer frozen", 15, _stop_observer, keeps_ranks=True, comes_back=True, needs_local=True),
    Fault("gcs", "GCS frozen", 15, _stop_gcs, keeps_ranks=True, comes_back=True),
    Fault("rank", "rank killed", 1, _kill_rank, (GROUPS,), ends=(GROUPS,), comes_back=True),
    Fault(
        "agent-and-rank",
        "agent pod deleted and rank killed",
        5,
        _delete_agent_and_kill_rank,
        (GROUPS,),
        ends=(GROUPS,),
        comes_back=True,
    ),
    Fault(
        "operator-away",
        "rank killed while the operator was stopped (from its start)",
        5,
        _kill_rank_while_operator_is_away,
        (GROUPS,),
        ends=(GROUPS,),
        comes_back=True,
    ),
    Fault(
        "operator-lost",
        "rank killed when the operator that serves was frozen",
        10,
        _stop_operator_and_kill_rank,
        (GROUPS,),
        ends=(GROUPS,),
        comes_back=True,
        needs_local=True,
    ),
    Fault("worker", "worker pod deleted", 1, _delete(Component.WORKER), ends=BOTH, comes_back=True),
    Fault("evicted", "worker pod evicted", 1, _evict, ends=BOTH, comes_back=True),
    Fault("node-frozen", "worker's node frozen", 15, _stop_node, needs_local=True),
    Fault("node-cut-off", "worker's node cut off", 15, _cut_node_off, needs_local=True),
    Fault("head", "head pod deleted", 1, _delete(Component.HEAD), ends=BOTH, comes_back=True),
)
