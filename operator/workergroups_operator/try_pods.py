"""Step three: ask the API server, by dry runs, whether it would accept the pods that are missing.

KubeRay reports neither which pool's pods it cannot create nor why, and stops at the first. Admission knows: schema,
quota, ServiceAccount, Pod Security, webhooks. The operator also tries each new template as a part of a RayCluster
without other pools, so that a template that is refused there does not block the RayCluster for the other pools.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from kubernetes.aio.dynamic.exceptions import InternalServerError, NotFoundError

from workergroups_api.conditions import Explanation
from workergroups_api.launch import digest
from workergroups_api.manifest import POD, Manifest, annotations_of
from workergroups_api.names import TEMPLATE_ANNOTATION
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, Reason
from workergroups_common.backoff import Backoff
from workergroups_kube import API_ERRORS, Kube, api_error_message, is_refusal
from workergroups_operator.desired.ownership import owned
from workergroups_operator.desired.raycluster import ray_cluster
from workergroups_operator.failures import internal_error
from workergroups_operator.image_checks import ImageCheck
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observed import Observed, entries, node_group_of
from workergroups_operator.policy.generated_names import without_generated_names
from workergroups_operator.policy.leaving_pods import Replicas
from workergroups_operator.policy.suspension import is_off
from workergroups_operator.templates import Templates, alone
from workergroups_operator.templates.stamp import digest_of
from workergroups_operator.timings import Timings
from workergroups_operator.writes import Writes

LOGGER = logging.getLogger(__name__)
# How many questions about the pods of a namespace may be under way at once.
NAMESPACE_QUESTIONS = 2
# In the API server's words for a pod that a ResourceQuota has no room for.
_QUOTA = "exceeded quota"
PENDING = Explanation(
    Reason.ADMISSION_PENDING,
    "the API server has not answered yet whether it accepts the pod; if this lasts, an admission webhook is slow",
)


@dataclass(frozen=True)
class Trial:
    """What to ask about one kind of pod."""

    pod: Manifest
    # A RayCluster with this pool only; None if the live RayCluster has the template already.
    ray_cluster: Manifest | None = None

    @cached_property
    def digest(self) -> str:
        """A digest of the question."""
        return digest([self.pod, self.ray_cluster])

    @cached_property
    def pod_digest(self) -> str:
        """A digest of the pod."""
        return digest([self.pod])


@dataclass(frozen=True)
class Answers:
    """Why the API server refuses pods, by node group (the head's under its component); accepted pods are left out."""

    refused: Mapping[str, Explanation] = field(default_factory=dict)
    # After how many seconds to ask again.
    look_again_seconds: float = float("inf")


@dataclass
class _Question:
    """What was asked about one kind of pod, and the last answer to it."""

    digest: str
    pod_digest: str
    answer: Explanation | None = PENDING
    # Since when the API server has refused, or accepted, the pod.
    since: float = 0.0
    due: float = 0.0

    def answers(self, trial: Trial) -> bool:
        """Whether an answer to this question is one to the trial.

        A pod that was accepted together with its RayCluster is not tried once more as soon as that is written: the pods
        that KubeRay is creating may use up the quota.
        """
        is_part = trial.ray_cluster is None and trial.pod_digest == self.pod_digest
        return trial.digest == self.digest or (is_part and self.answer is None)

    def note(self, answer: Explanation | None, now: float, look_again: Backoff) -> None:
        """Take note of an answer. The longer it stays the same, the later the operator asks again."""
        if self.answer is PENDING or (self.answer is None) != (answer is None):
            self.since = now
        self.answer = answer
        self.due = now + look_again.pause(now - self.since)


class PodTrials:
    """The API server's last answers, and the questions that are under way."""

    def __init__(self, client: Kube, enqueue: Callable[[ClusterKey], None], timings: Timings) -> None:
        self._client = client
        self._look_again = timings.look_again
        self._questions: dict[ClusterKey, dict[str, _Question]] = {}
        self.writes: Writes[None] = Writes(enqueue, timings, at_once=NAMESPACE_QUESTIONS)

    async def answers(self, key: ClusterKey, trials: Mapping[str, Trial]) -> Answers:
        """Return what is known of these pods after a moment; forget all other questions about the cluster."""
        questions = self._asked(key, trials)
        clock = asyncio.get_running_loop().time
        due = {
            (key, name, question.digest): partial(self._ask, question, trials[name])
            for name, question in questions.items()
            if question.due <= clock()
        }
        earlier = {name: question.answer for name, question in questions.items()}
        await self.writes.run(key, due)
        refused = {name: question.answer for name, question in questions.items() if question.answer is not None}
        if early := {name for name, why in refused.items() if _is_early(name, trials[name], earlier[name], why)}:
            unsure = {name: Explanation(Reason.ADMISSION_PENDING, refused[name].message) for name in early}
            return Answers({**refused, **unsure}, 0.0)
        # The answers to questions that are due are on their way.
        waits = [question.due - clock() for question in questions.values() if question.due > clock()]
        return Answers(refused, min(waits, default=float("inf")))

    def forget(self, key: ClusterKey) -> None:
        """Forget all questions about a cluster."""
        self._asked(key, {})

    def _asked(self, key: ClusterKey, trials: Mapping[str, Trial]) -> dict[str, _Question]:
        """Return the questions about these pods: the known ones that are still the same, and new ones."""
        before = self._questions.pop(key, {})
        questions = {}
        for name, trial in trials.items():
            known = before.get(name)
            questions[name] = known if known and known.answers(trial) else _Question(trial.digest, trial.pod_digest)
        for name, old in before.items():
            if old is not questions.get(name):
                self.writes.cancel((key, name, old.digest))
        if questions:
            self._questions[key] = questions
        return questions

    async def _ask(self, question: _Question, trial: Trial) -> None:
        question.note(await _answer(self._client, trial), asyncio.get_running_loop().time(), self._look_again)


def _is_early(name: str, trial: Trial, earlier: Explanation | None, why: Explanation) -> bool:
    """Return whether the pods of a live node group were read before their refusal came.

    KubeRay may have created pods since, which used up a quota. If the RayCluster asked for no more than were read, it
    would delete these, or others. So the next reconcile decides.
    """
    is_live = trial.ray_cluster is None and name != Component.HEAD
    return is_live and why is not PENDING and earlier in (None, PENDING)


def trials_of(observed: Observed, templates: Templates, checks: Sequence[ImageCheck] = ()) -> dict[str, Trial]:
    """Return a trial for each kind of pod that lacks some, is about to be replaced, or has a new template. Pure.

    Templates that are too large are left out, and pools that are suspended. The pods of `checks` are tried by name.
    """
    if not observed.pools or is_off(observed, templates.suspended):
        return {}
    trials = {check.name: Trial(_pod(observed, check.name, check.pod)) for check in checks if not check.exists}
    if not observed.pods_of(Component.HEAD) or templates.replaces_head:
        trials[Component.HEAD] = Trial(_pod(observed, Component.HEAD, templates.head))
    for pool in observed.pools:
        name, template = node_group_of(pool), templates.of(pool)
        if name in templates.too_large or pool.name in templates.suspended:
            continue
        is_new = _template_digest((observed.live_node_group(name) or {}).get("template")) != _template_digest(template)
        if is_new or name in templates.beginning or len(observed.pods_of(Component.WORKER, name)) < pool.spec.nodes:
            cluster = _ray_cluster(observed, templates, pool) if is_new else None
            trials[name] = Trial(_pod(observed, name, template), cluster)
    return trials


def separated(
    refused: Mapping[str, Explanation], observed: Observed, templates: Templates
) -> tuple[dict[str, Explanation], dict[str, Explanation]]:
    """Return why pods that are missing are refused, and, by node group, why rolls cannot begin. Pure.

    As long as a roll cannot begin, the pods keep their templates, about which the API server was not asked. A roll that
    replaces the head begins only if the API server accepts the head, too.
    """
    of_rolls = {*templates.beginning, *([Component.HEAD.value] if templates.replaces_head else [])}
    blocked = {
        name: why
        for name, why in refused.items()
        if name in of_rolls and not _fits_after(why, name, observed, templates)
    }
    if (head := blocked.pop(Component.HEAD, None)) is not None:
        blocked[node_group_of(observed.pools[0])] = Explanation(head.reason, f"head: {head.message}")
    return {name: why for name, why in refused.items() if name not in of_rolls}, blocked


def not_kept(
    blocked: Mapping[str, Explanation], refused: Collection[str], templates: Templates
) -> dict[str, Explanation]:
    """Return the rolls that cannot begin, of node groups that have no earlier template to keep. Pure.

    They would get what their specs ask for, which the API server has just refused, and so would refuse the RayCluster.
    If it refused only the head, the nodes may have what the spec asks for. `refused` are the pods that it refused.
    """
    return {
        name: why
        for name, why in blocked.items()
        if name in refused and digest_of(templates.workers[name]) == digest_of(templates.asked_workers[name])
    }


def _fits_after(why: Explanation, name: str, observed: Observed, templates: Templates) -> bool:
    """Return whether only a quota refuses the new pod, which has room once the old one, of the same size, is gone."""
    if name == Component.HEAD:
        old, new = observed.live_head_template, templates.head
    else:
        old, new = (observed.live_node_group(name) or {}).get("template"), templates.workers[name]
    return _QUOTA in why.message and _resources(old) == _resources(new)


def _resources(template: Any) -> list[Any]:
    """Return the resources of a pod's containers."""
    return [each.get("resources") for each in entries(template, "containers")]


def _template_digest(template: Manifest | None) -> str | None:
    digest = annotations_of(template).get(TEMPLATE_ANNOTATION)
    return None if digest is None else str(digest)


def _pod(observed: Observed, name: str, template: Manifest) -> Manifest:
    where = {"namespace": observed.key.namespace, "generateName": f"{observed.key.name}-{name}-"}
    metadata = {key: value for key, value in template["metadata"].items() if key != "name"} | where
    return POD.manifest(metadata, spec=template["spec"])


def _ray_cluster(observed: Observed, templates: Templates, pool: ResourcePool) -> Manifest:
    # Without the pods of other pools, through which each pool's trial would go.
    only = replace(observed, pools=(pool,), groups=(), pods=tuple(observed.all_pods_of(node_group_of(pool))))
    replicas, own = {pool.name: Replicas(pool.spec.nodes)}, alone(templates, observed, pool)
    return owned(ray_cluster(only, own, {}, replicas, token_digest=""), only)


async def _answer(client: Kube, trial: Trial) -> Explanation | None:
    try:
        await client.create(trial.pod, dry_run=True)
        if trial.ray_cluster is not None:
            await client.apply(trial.ray_cluster, dry_run=True)
    except NotFoundError:
        return None  # There is no RayCluster kind, or the namespace is being deleted: `apply` reports that.
    except API_ERRORS as error:
        why = without_generated_names(api_error_message(error))
        # A webhook that cannot be called is an internal error to the API server, and may stay one.
        if is_refusal(error) or isinstance(error, InternalServerError):
            return Explanation(Reason.PODS_REFUSED, f"the API server refuses the pod: {why}")
        return Explanation(Reason.APPLY_FAILED, f"the pod cannot be tried now, and is tried again: {why}")
    except Exception as error:  # The pod may hold anything.
        LOGGER.exception("a pod cannot be tried")
        return internal_error(error, "the operator cannot ask the API server about the pod: change its podTemplate")
    return None
