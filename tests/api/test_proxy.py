"""The proxy by itself: what it passes on, and what it does wrong when told to."""

import asyncio
import json

import aiohttp
import pytest

from tests.simulation.api import Api, eventually
from tests.simulation.faults import TOO_MANY, WEBHOOK, Close, Cut, CutBody, Delay, Faults, Gap, Repeat, Rule, Stale
from tests.simulation.proxy import Proxy


class Told(Faults):
    """Does at each event what the test says next."""

    def __init__(self, *events):
        super().__init__()
        self.events = list(events)

    def of_event(self):
        return self.events.pop(0) if self.events else None


@pytest.fixture
def faults():
    return Told()


@pytest.fixture
def client(access, runner, faults):
    """A namespace, a proxy, and a session that goes through it."""
    from contextlib import AsyncExitStack

    stack = AsyncExitStack()

    async def start():
        api = await stack.enter_async_context(Api.connect(access))
        proxy = await stack.enter_async_context(Proxy.run(access, faults))
        headers = {"Authorization": f"Bearer {access.tokens['admin']}"}
        url = await proxy.listen("client")
        session = await stack.enter_async_context(aiohttp.ClientSession(url, headers=headers))
        return api, proxy, session

    yield runner.run(start())
    runner.run(stack.aclose())


MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def names(api):
    return {item["metadata"]["name"] for item in (await api.request("GET", MAPS))["items"]}


async def test_requests_pass_and_writes_are_counted(client):
    _, proxy, session = client
    async with session.post(MAPS, json=config_map("passes")) as answer:
        assert answer.status == 201
    async with session.get(f"{MAPS}/passes") as answer:
        assert (await answer.json())["metadata"]["name"] == "passes"
    (write,) = proxy.writes
    assert (write.request.method, write.request.plural, write.status) == ("POST", "configmaps", 201)
    await session.delete(f"{MAPS}/passes")


async def test_a_rule_refuses_as_often_as_it_says(client):
    api, proxy, session = client
    proxy.rule(Rule(lambda request: request.method == "POST", TOO_MANY, times=1))
    async with session.post(MAPS, json=config_map("refused")) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert (await answer.json())["reason"] == "TooManyRequests"
    assert "refused" not in await names(api)


async def test_a_missing_right_is_noted_and_a_refusal_by_admission_is_not(client, access):
    _, proxy, _session = client
    operator = {"Authorization": f"Bearer {access.tokens['operator']}"}
    spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "nobody"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    async with aiohttp.ClientSession(await proxy.listen("operator"), headers=operator) as asking:
        proxy.rule(Rule(lambda request: request.name == "refused", WEBHOOK, times=1))
        for refused in (asking.get(f"{MAPS}/refused"), asking.post("/api/v1/namespaces/default/pods", json=pod)):
            async with refused as answer:
                assert answer.status == 403
        assert proxy.forbidden == []
        async with asking.get("/api/v1/namespaces/default/pods/a") as answer:
            assert answer.status == 403
        (noted,) = proxy.forbidden
    assert noted.startswith("operator GET pods/a: ")
    assert "cannot get resource" in noted


async def test_a_right_that_is_granted_late_is_not_missing(client, access):
    api, proxy, _session = client
    operator = {"Authorization": f"Bearer {access.tokens['operator']}"}
    rule = {"apiGroups": [""], "resources": ["limitranges"], "verbs": ["get"]}
    meta = {"name": "late", "namespace": "default"}
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    subject = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "late"}
    async with aiohttp.ClientSession(await proxy.listen("operator"), headers=operator) as asking:

        async def status():
            async with asking.get("/api/v1/namespaces/default/limitranges/none") as answer:
                return answer.status

        assert await status() == 403
        assert len(proxy.forbidden) == 1
        await api.request("POST", f"{rbac}/roles", {"metadata": meta, "rules": [rule]})
        await api.request(
            "POST", f"{rbac}/rolebindings", {"metadata": meta, "subjects": [subject], "roleRef": reference}
        )

        async def granted():
            return await status() == 404

        await eventually("the right", granted)
        assert proxy.forbidden == []
    for plural in ("rolebindings", "roles"):
        await api.request("DELETE", f"{rbac}/{plural}/late")


@pytest.mark.parametrize("done", [True, False])
async def test_a_cut_is_before_the_write_or_after_it(client, done):
    api, proxy, session = client
    name = f"cut-{done}".lower()
    proxy.rule(Rule(lambda request: request.method == "POST", Cut(done=done), times=1))
    with pytest.raises(aiohttp.ClientError):
        await session.post(MAPS, json=config_map(name))
    assert (name in await names(api)) is done


async def test_a_body_can_end_in_its_middle(client):
    _, proxy, session = client
    proxy.rule(Rule(lambda request: request.method == "GET", CutBody(), times=1))
    with pytest.raises(aiohttp.ClientError):
        async with session.get("/version") as answer:
            await answer.read()


async def test_only_a_list_of_any_version_is_stale(client):
    api, proxy, session = client
    proxy.rule(Rule(lambda request: request.may_be_stale, Stale(), times=99))
    query = {"resourceVersion": "0", "labelSelector": "a=b"}
    await (await session.get(MAPS, params=query)).read()
    await api.create(
        config_map("later") | {"metadata": {"name": "later", "namespace": "default", "labels": {"a": "b"}}}
    )
    assert (await (await session.get(MAPS, params=query)).json())["items"] == []
    assert len((await (await session.get(MAPS, params={"labelSelector": "a=b"})).json())["items"]) == 1


async def watched(api, session, name, count, seconds=5, said=None):
    """What a watch says of `count` changes of an object until it ends or is silent."""
    await api.apply(config_map(name) | {"data": {"n": "0"}})
    version = (await api.request("GET", MAPS))["metadata"]["resourceVersion"]
    said = [] if said is None else said
    query = {"watch": "true", "resourceVersion": version, "fieldSelector": f"metadata.name={name}"}
    try:
        async with asyncio.timeout(seconds), session.get(MAPS, params=query) as answer:
            for number in range(1, count + 1):
                await api.apply(config_map(name) | {"data": {"n": str(number)}})
            async for line in answer.content:
                event = json.loads(line)
                said.append(event["object"].get("data", {}).get("n") or event["object"].get("code"))
    except (TimeoutError, ValueError, aiohttp.ClientError) as error:
        said.append(type(error).__name__)
    return said


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], ["1", "2", "3", "TimeoutError"]),
        ([Repeat()], ["1", "1", "2", "3", "TimeoutError"]),
        ([None, Gap(0.3)], ["1", 410]),
        ([Close(in_line=False)], ["ClientPayloadError"]),
    ],
)
async def test_events_are_doubled_lost_or_cut_off(client, faults, events, said):
    api, proxy, session = client
    faults.events = events
    proxy.begin_faults()
    assert await watched(api, session, f"watched-{len(said)}-{len(events)}", 3, seconds=3) == said


async def test_faults_that_end_let_go_what_was_held_back(client, faults):
    api, proxy, session = client
    faults.events = [Delay(60)]
    proxy.begin_faults()
    watch = asyncio.create_task(watched(api, session, "held", 1, seconds=2))
    await asyncio.sleep(0.5)
    proxy.end_faults()
    assert await watch == ["1", "TimeoutError"]


async def test_a_client_that_was_ended_has_no_connection_left(client):
    api, proxy, session = client
    said = []
    watch = asyncio.create_task(watched(api, session, "ended", 1, seconds=60, said=said))
    await eventually("the event", lambda: said)
    proxy.cut_off("client")
    await eventually("the watch to end", watch.done)
    assert watch.result()[0] == "1"
