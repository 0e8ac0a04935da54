"""Of an evicted pod, the operator knows why it ended, although Ray misses its node later."""

from tests.unit.operator.make import EVICTED, KEY, pod
from workergroups_operator.evicted_pods import EvictedPods


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_an_evicted_pod_is_known_for_a_while_after_it_is_gone():
    clock = Clock()
    known, evicted, other = EvictedPods(clock), pod("worker", "p-0", **EVICTED), pod("worker", "p-1")
    assert known.update(KEY, [evicted, other]) == ()
    assert known.update(KEY, []) == (evicted,), "p-1 was not evicted"
    clock.now = 60.0
    assert known.update(KEY, [other]) == (evicted,)
    clock.now = 661.0
    assert known.update(KEY, []) == ()
    assert known._seen == {}


def test_a_pod_of_the_same_name_does_not_count_as_the_evicted_one():
    known, evicted = EvictedPods(), pod("worker", "p-0", **EVICTED)
    known.update(KEY, [evicted])
    again = pod("worker", "p-0")
    again["metadata"]["uid"] = "another"
    assert known.update(KEY, [again]) == (evicted,)


def test_a_cluster_is_forgotten():
    known = EvictedPods()
    known.update(KEY, [pod("worker", "p-0", **EVICTED)])
    known.forget(KEY)
    assert known.update(KEY, []) == ()
