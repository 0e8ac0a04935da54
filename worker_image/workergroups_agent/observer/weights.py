"""Which weights the ranks of a group hold, and which of them hold others than they should. Pure."""

from collections.abc import Iterable, Mapping

from workergroups.announcements.held_weights import HeldWeights, majority
from workergroups_agent.ray_state import RankActor
from workergroups_agent.weights_reader import RecordedWeights
from workergroups_api.report import MAX_MODELS, WeightsReport
from workergroups_common.ranges import ranges


def weights_of(ranks: Mapping[int, RankActor], recorded: RecordedWeights) -> tuple[WeightsReport, ...]:
    """Return what these ranks hold of each model that one of them has published or received."""
    alive = {number: rank.actor_id for number, rank in ranks.items() if rank.is_alive}
    models = sorted({model for actor_id in alive.values() for model in recorded.now.get(actor_id, ())})
    return tuple(_of_model(model, alive, recorded) for model in models[:MAX_MODELS])


def _of_model(model: str, alive: Mapping[int, str], recorded: RecordedWeights) -> WeightsReport:
    held = {
        number: recorded.now[actor_id][model]
        for number, actor_id in sorted(alive.items())
        if model in recorded.now.get(actor_id, ())
    }
    earlier = [before[model].version for each in alive.values() if model in (before := recorded.before.get(each, {}))]
    newest_then = max(earlier, default=0)
    return WeightsReport(
        model=model,
        version=max(each.version for each in held.values()),
        behind=ranges(number for number, each in held.items() if each.version < newest_then),
        different=ranges(_different(held)),
    )


def _different(held: Mapping[int, HeldWeights]) -> Iterable[int]:
    """Yield the ranks that hold other bits than most of their replicas: all of them, if these are as many."""
    replicas: dict[tuple[int, int], dict[int, int]] = {}
    for number, each in held.items():
        replicas.setdefault((each.version, each.layout), {})[number] = each.digest
    for digests in replicas.values():
        usual, is_settled = majority(digests.values())
        yield from (number for number, digest in digests.items() if digest != usual or not is_settled)
