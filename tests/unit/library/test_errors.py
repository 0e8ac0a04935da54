from __future__ import annotations

import pickle

from ray.exceptions import RayActorError

from workergroups import IncarnationReplacedError, RankDiedError
from workergroups_api.vocabulary import RankEnd


def test_errors_of_ranks_survive_pickling():
    error = IncarnationReplacedError(
        "replaced",
        rank=3,
        group="trainer",
        incarnation=1,
        current=2,
        actor_id="0a" * 16,
        reason=RankEnd.REMOVED,
        cause="killed",
    )
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, RankDiedError)
    assert isinstance(copy, RayActorError)
    assert str(copy) == "replaced"
    names = ("rank", "actor_id", "cause", "reason", "group", "incarnation", "current")
    assert [getattr(copy, name) for name in names] == [3, "0a" * 16, "killed", "Removed", "trainer", 1, 2]


def test_the_error_of_a_rank_of_no_worker_group_has_no_incarnation():
    error = RankDiedError(
        "died", rank=0, group="Ab3xYz", incarnation=None, actor_id="0a" * 16, reason=RankEnd.PROCESS_DIED, cause=""
    )
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.group, copy.incarnation, copy.reason) == ("Ab3xYz", None, RankEnd.PROCESS_DIED)
