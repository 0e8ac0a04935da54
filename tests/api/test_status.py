"""`workergroups status` as typed, against the API server: all namespaces, and what it shows while things change."""

import asyncio
import signal

import pytest

from tests.api.command_line import CLIENT, INTERRUPTED, SECONDS, Terminal, read_until
from tests.simulation.faults import Refuse, Rule
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import GROUP

READ = [
    {"apiGroups": [GROUP], "resources": ["resourcepools", "workergroups"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["get", "list", "watch"]},
]
CURSOR_UP = "\x1b[1A"


async def interrupted(process):
    process.send_signal(signal.SIGINT)
    return await asyncio.wait_for(process.wait(), SECONDS)


async def test_all_namespaces_are_in_one_table(scene, command):
    await scene.pool("p")
    await scene.ready(RESOURCE_POOL, "p", SECONDS)
    header, *rows = (await command("status", "-A", "-n", "elsewhere")).splitlines()
    assert header.split() == [
        "NAMESPACE",
        "KIND",
        "NAME",
        "READY",
        "SIZE",
        "RESTARTS",
        "OLDEST",
        "CALL",
        "UNTIL",
        "WHY",
    ]
    row = [scene.namespace, "pool", "p", "True", "1", "of", "1", "nodes", "-", "-", "-", "-"]
    assert row in [each.split() for each in rows]


async def test_restarts_after_failures_are_in_the_list_and_in_that_of_kubectl(scene, command):
    await scene.pool("p")
    await scene.group("p", failurePolicy={"restart": "Group", "backoffSeconds": 0})
    await scene.ready(WORKER_GROUP, "p", SECONDS)
    scene.world.kill_rank("p", next(iter(scene.world.live_ranks("p"))))
    await scene.until(WORKER_GROUP, "p", "Ready", "False")
    await scene.ready(WORKER_GROUP, "p", SECONDS)
    (row,) = [line.split() for line in (await command("status")).splitlines() if line.startswith("group")]
    assert row[:8] == ["group", "p", "True", "2", "of", "2", "ranks", "1"]
    assert (await scene.api.table(WORKER_GROUP, scene.namespace))["p"]["Restarts"] == 1


async def test_who_may_not_list_all_namespaces_is_told_what_to_do(scene, command):
    await scene.pool("p")
    await command.as_account("reader", rules=READ)
    assert "pool  p" in await command("status")
    told = await command("status", "-A", code=1)
    assert "cannot list resource" in told
    assert "kubectl create clusterrolebinding" in told
    assert told.endswith(". To see one namespace: workergroups status -n NAMESPACE\n")
    assert told.count("\n") == 1


async def test_a_watch_shows_changes_until_it_is_interrupted(scene, command):
    process = await command.start("status", "--watch")
    await read_until(process, "no pools and no groups in namespace")
    await scene.pool("p")
    await read_until(process, "True")
    await scene.delete(RESOURCE_POOL, "p")
    await read_until(process, "no pools and no groups in namespace")
    assert await interrupted(process) == INTERRUPTED


async def test_on_a_terminal_it_is_drawn_in_place(scene, command):
    terminal = Terminal()
    process = await command.start("status", "--watch", terminal=terminal.device, TERM="xterm")
    await terminal.until("no pools and no groups in namespace")
    await scene.pool("p")
    drawn = await terminal.until("True")
    _, _, latest = drawn.rpartition(CURSOR_UP)
    assert "no pools" not in latest
    assert "pool" in latest
    assert await interrupted(process) == INTERRUPTED
    terminal.close()


async def test_a_watch_survives_an_api_server_that_is_away(scene, command):
    await scene.pool("p")
    await scene.ready(RESOURCE_POOL, "p", SECONDS)
    process = await command.start("status", "--watch")
    await read_until(process, "True")
    away = Rule(lambda request: request.client == CLIENT, Refuse(503, "ServiceUnavailable", "try later"), times=10**6)
    scene.proxy.rule(away)
    scene.proxy.cut_off(CLIENT)
    await read_until(process, "try later")
    await scene.pool("later")
    away.times = 0
    await read_until(process, "later")
    assert await interrupted(process) == INTERRUPTED


@pytest.mark.long
async def test_an_object_that_is_deleted_while_it_is_watched_is_missed_and_may_come_back(scene, command):
    await scene.pool("p")
    await scene.ready(RESOURCE_POOL, "p", SECONDS)
    process = await command.start("status", "p", "-w")
    await read_until(process, "Ready            True")
    await scene.delete(RESOURCE_POOL, "p")
    await read_until(process, "there is no pool or group p in namespace")
    await scene.pool("p")
    await read_until(process, "Ready            True")
    assert await interrupted(process) == INTERRUPTED


async def test_a_watch_without_the_right_to_watch_looks_now_and_then(scene, command):
    rules = [{**rule, "verbs": ["get", "list"]} for rule in READ]
    await command.as_account("reader", rules=rules)
    process = await command.start("status", "--watch")
    await read_until(process, "no pools and no groups in namespace")
    await scene.pool("p")
    await read_until(process, "pool  p")
    assert await interrupted(process) == INTERRUPTED


async def test_at_rest_a_watch_asks_for_nothing(scene, command):
    asked = []
    scene.proxy.rule(Rule(lambda request: request.client == CLIENT and asked.append(request), None, times=10**6))
    await scene.pool("p")
    await scene.ready(RESOURCE_POOL, "p", SECONDS)
    process = await command.start("status", "--watch")
    await read_until(process, "True")
    await scene.rest(2.0)
    before = len(asked)
    await scene.rest(5.0)
    assert asked[before:] == []
    assert await interrupted(process) == INTERRUPTED


async def test_a_first_look_that_fails_ends_it(command):
    told = await command("status", "absent", "--watch", code=1)
    assert told.startswith("error: there is no pool or group absent in namespace")
