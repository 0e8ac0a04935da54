"""Without our `ray start` and all that rests on it: a pool that sets BASH_ENV works as others do, only more slowly."""

from tests.cluster.drivers import look
from tests.cluster.kubectl import group, pool

RAYS_OWN = [{"name": "BASH_ENV", "value": "/dev/null"}]


def until_ranks_of(namespace, incarnation):
    """Wait until ranks of this incarnation, or a later one, are ready; return what each says of its process."""
    namespace.until(
        lambda: namespace.get("workergroup", "trainer").get("status", {}),
        lambda status: status.get("incarnation", 0) >= incarnation and status.get("readyRanks") == 2,
        240,
    )
    namespace.until_ready("workergroup", "trainer")
    (ranks,) = look(namespace, "actors", "trainer")
    return ranks


def test_ranks_start_compute_and_heal_also_when_the_head_is_lost(namespace, clean):
    namespace.apply(pool(env=RAYS_OWN), group(pools=["actors"]))
    first = until_ranks_of(namespace, 1)
    (worker,) = namespace.get("pods", selector="workergroups.dev/component=worker")
    running = namespace.run(
        "exec", worker["metadata"]["name"], "--", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
    )
    assert "raylet" in running
    assert "workergroups_agent" not in running, "our start is not there"

    namespace.run("exec", first[1]["pod"], "--", "sh", "-c", f"kill -KILL {first[1]['pid']}")
    second = until_ranks_of(namespace, 2)
    assert {rank["pid"] for rank in second}.isdisjoint(rank["pid"] for rank in first)

    namespace.run("delete", "pod", namespace.head("actors"), "--grace-period=0", "--force")
    until_ranks_of(namespace, 3)
