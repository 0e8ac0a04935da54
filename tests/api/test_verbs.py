"""`init`, `wait` and `scale` as typed, against the API server."""

import asyncio

import pytest
import yaml

from tests.api.command_line import SECONDS, read_until
from tests.simulation.machines import NO_SUCH_NODE
from tests.simulation.scene import NEVER_RESTARTED
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, kind_of
from workergroups_cli.exit_codes import TIME_IS_UP


async def test_what_init_writes_becomes_ready(scene, command):
    told = await command("init", "tiny", "--cpus")
    assert "workergroups up -f pool.yaml" in told
    assert "group tiny: ready" in await command("up", "-f", "pool.yaml", "--timeout", "30s")
    assert len(scene.world.live_ranks("tiny")) == 2


@pytest.mark.parametrize("words", [(), ("--processes", "8"), ("--cpus",)])
async def test_the_api_server_knows_all_fields_that_init_writes(scene, command, words):
    for manifest in yaml.safe_load_all(await command("init", "tiny", *words, "--file", "-")):
        kind = kind_of(manifest)
        prefix = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
        path = f"{prefix}/namespaces/{scene.namespace}/{kind.plural}"
        await scene.api.request("POST", path, manifest, fieldValidation="Strict", dryRun="All")


async def test_init_replaces_no_file(command):
    (command.folder / "pool.yaml").write_text("mine")
    assert "pool.yaml exists, and is not replaced" in await command("init", code=1)
    assert (command.folder / "pool.yaml").read_text() == "mine"


async def test_wait_returns_when_all_are_ready(scene, command):
    await scene.pool("p")
    await scene.group("p")
    assert (await command("wait", "p")).splitlines()[-1] == "pool p, group p: Ready"
    assert (await command("wait", "pool/p", "p", "--for=condition=uptodate")).splitlines() == [
        "pool p, group p: UpToDate"
    ]


async def test_wait_says_what_it_waits_for_until_the_time_is_up(scene, command):
    await scene.pool("p", nodeSelector={NO_SUCH_NODE: "true"})
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "NoMatchingNode", seconds=SECONDS)
    told = await command("wait", "pool/p", "--for=Ready", "--timeout", "5s", code=TIME_IS_UP)
    assert "error: not ready within 5s: pool p: NoMatchingNode: head: no node fits on nodes with" in told
    told = await command("wait", "p", "--for", "Suspended", "--timeout", "2s", code=TIME_IS_UP)
    assert "error: not Suspended within 2s: pool p: it has no condition Suspended yet; NoMatching" in told


@pytest.mark.parametrize("goal", ["Ready", "RanksReady"])
async def test_wait_ends_when_waiting_cannot_help(scene, command, goal):
    await scene.pool("p")
    await scene.group("p", **NEVER_RESTARTED)
    await scene.ready(WORKER_GROUP, "p", SECONDS)
    scene.world.kill_rank("p", scene.world.live_ranks("p")[0])
    await scene.until(WORKER_GROUP, "p", "Failed", "True", seconds=SECONDS)
    told = await command("wait", "group/p", "--for", goal, code=1)
    assert "error: group p will not" in told
    assert "Failed" in await command("wait", "group/p", "--for", "Failed")


async def test_wait_for_a_run_that_nobody_starts_says_so(scene, command):
    await scene.pool("p")
    await scene.group("p")
    told = await command("wait", "p", "--for", "Complete", code=1)
    assert told == "error: group p runs no method, so it is never Complete: set its spec.run\n"


async def test_wait_ends_when_the_object_is_deleted(scene, command):
    await scene.pool("p", nodeSelector={NO_SUCH_NODE: "true"})
    process = await command.start("wait", "p")
    await read_until(process, "pool p: ")
    await scene.delete(RESOURCE_POOL, "p")
    await read_until(process, "error: there is no pool p in namespace")
    assert await asyncio.wait_for(process.wait(), SECONDS) == 1


async def test_scale_waits_for_the_nodes_and_names_groups_that_do_not_use_them(scene, command):
    await scene.pool("p")
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p", SECONDS)
    told = await command("scale", "p", "2")
    assert told.splitlines()[0] == "pool p: 1 -> 2 nodes"
    assert "pool p: ready" in told
    assert "group p: UpToDate=False: " in told
    assert (await scene.get(RESOURCE_POOL, "p"))["status"]["readyNodes"] == 2


async def test_a_suspended_pool_is_scaled_without_waiting(scene, command):
    await scene.pool("p", suspend=True)
    assert "is suspended, and has its nodes when it is resumed" in await command("scale", "p", "3")
    assert (await scene.get(RESOURCE_POOL, "p"))["spec"]["nodes"] == 3


async def test_more_nodes_than_a_pool_may_have_are_refused(scene, command):
    await scene.pool("p")
    assert "spec.nodes" in await command("scale", "p", "100000", code=1)
