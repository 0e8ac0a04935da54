from __future__ import annotations

import pickle

from ray.exceptions import RayActorError

from workergroups import IncarnationReplacedError, RankDiedError


def test_errors_of_ranks_survive_pickling():
    error = IncarnationReplacedError(3, "0a" * 16, "replaced", "killed", group="trainer", incarnation=1, current=2)
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, RankDiedError)
    assert isinstance(copy, RayActorError)
    assert str(copy) == "replaced"
    names = ("rank", "actor_id", "cause", "group", "incarnation", "current")
    assert [getattr(copy, name) for name in names] == [3, "0a" * 16, "killed", "trainer", 1, 2]
