"""What kopf gets over its connection: what it asked for, no connection, or the order to list again."""

import asyncio
import json

import aiohttp
import kopf
import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from workergroups_operator.connection import connect
from workergroups_operator.timings import Timings
from workergroups_operator.watches import Watches

PATH = "/apis/workergroups.dev/v1alpha1/workergroups"
REFUSAL = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no leader","code":500}'
AGAIN = {"type": "ERROR", "object": {"code": 410}}


def item(name, **more):
    return {"metadata": {"namespace": "ns", "name": name, "uid": f"u-{name}"}, **more}


def group_list(*items):
    return {"kind": "WorkerGroupList", "metadata": {"resourceVersion": "7"}, "items": list(items)}


def event(type_, object_):
    return json.dumps({"type": type_, "object": object_}).encode() + b"\n"


class Server:
    """Answers what it is told, in turn; the last answer again and again."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def __call__(self, request):
        assert request.headers["Accept-Encoding"] == "identity", "what is compressed has no known size"
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        body, status = answer if isinstance(answer, tuple) else (answer, 200)
        return web.Response(body=body if isinstance(body, bytes) else json.dumps(body).encode(), status=status)


@pytest.fixture
def ask(monkeypatch):
    """Call a coroutine function with kopf's session, and the URL of a server that answers so."""

    async def call(function, server):
        async with RawTestServer(server) as running:
            url = str(running.make_url("")).rstrip("/")
            monkeypatch.setattr(kopf, "login_via_client", lambda **_: kopf.ConnectionInfo(server=url))
            connection = await connect(Watches(Timings(watch_retry=0.0)))
            async with connection.aiohttp_session as session:
                return await function(session, url)

    return lambda function, *answers: asyncio.run(call(function, Server(*answers)))


async def listed(session, url):
    response = await session.get(url + PATH)
    return response.status, await response.json()


async def watched(session, url):
    """As kopf reads it, until it has to list again or the watch ends."""
    response = await session.get(url + PATH, params={"watch": "true"})
    if response.status != 200:
        return response.status
    found = []
    async with response:
        async for line in response.content.iter_chunked(1024):
            found.append(json.loads(line))
            if found[-1] == AGAIN:
                break
    return found


def test_a_list_is_read_as_skeletons(ask):
    status, found = ask(listed, group_list(item("a", spec={"worker": {"args": [[[{}]]]}}), {"metadata": {}}))
    assert (status, found) == (200, group_list(item("a", spec={})))


NO_LISTS = {
    **{str(status): (REFUSAL, status) for status in (400, 403, 404, 410, 429, 500, 503, 504)},
    "HTML": b"<html>OK</html>",
    "nothing": b"",
    "null": b"null",
    "number": b"1",
    "refusal with status 200": REFUSAL,
    "no version": {"kind": "WorkerGroupList", "items": []},
    "half": json.dumps(group_list(item("a"))).encode()[:-5],
    "depth": b"[" * 100_000,
    "depth of a refusal": (b"[" * 100_000, 500),
}


@pytest.mark.parametrize("answer", NO_LISTS.values(), ids=NO_LISTS)
def test_any_other_answer_to_a_list_is_no_connection(ask, answer):
    with pytest.raises(aiohttp.ClientConnectionError, match="workergroups"):
        ask(listed, answer)


IN_NAMESPACE = "/apis/workergroups.dev/v1alpha1/namespaces/gone/workergroups"
FORBIDDEN = (REFUSAL, 403)


async def listed_in_namespace(session, url):
    response = await session.get(url + IN_NAMESPACE)
    return response.status, await response.json()


def test_a_namespace_that_may_not_be_listed_is_empty_to_kopf(ask):
    status, found = ask(listed_in_namespace, FORBIDDEN)
    assert (status, found["items"]) == (200, [])


def test_a_namespace_with_objects_that_may_no_longer_be_listed_is_no_connection(ask):
    async def twice(session, url):
        assert (await listed_in_namespace(session, url))[1]["items"] != []
        with pytest.raises(aiohttp.ClientConnectionError, match="403"):
            await listed_in_namespace(session, url)

    ask(twice, group_list(item("a")), FORBIDDEN)


def test_without_rights_in_all_namespaces_there_is_no_connection(ask):
    with pytest.raises(aiohttp.ClientConnectionError, match="403"):
        ask(listed, FORBIDDEN)


@pytest.mark.parametrize("function", [listed, watched])
def test_kopf_learns_that_its_credentials_are_refused(ask, function):
    assert ask(function, (b"[" * 100_000, 401)) in (401, (401, None))


def test_a_watch_is_read_as_skeletons(ask):
    bookmark = {"metadata": {"resourceVersion": "9"}}
    text = event("ADDED", item("a", spec={"env": [1]})) + event("BOOKMARK", bookmark) + event("DELETED", item("a"))
    assert ask(watched, text) == [
        {"type": "ADDED", "object": item("a", spec={})},
        {"type": "BOOKMARK", "object": bookmark},
        {"type": "DELETED", "object": item("a")},
    ]


NO_WATCHES = {
    **{str(status): (REFUSAL, status) for status in (400, 403, 404, 410, 429, 500, 503, 504)},
    "error": event("ERROR", json.loads(REFUSAL)),
    "error without object": event("ERROR", None),
    "unknown type": event("RENAMED", item("a")),
    "odd type": event(1, item("a")),
    "no object": b'{"type":"ADDED"}\n',
    "no metadata": event("ADDED", {"spec": {}}),
    "no name": event("MODIFIED", {"metadata": {"uid": "u"}}),
    "bookmark without version": event("BOOKMARK", {"metadata": {}}),
    "refusal": REFUSAL,
    "list": json.dumps(group_list()).encode(),
    "text": b'"ADDED"\n',
    "HTML": b"<html>\n<body>\n",
    "half": event("ADDED", item("b"))[:-9],
    "depth": b"[" * 100_000,
}


@pytest.mark.parametrize("answer", NO_WATCHES.values(), ids=NO_WATCHES)
def test_after_any_other_answer_to_a_watch_kopf_lists_again(ask, answer):
    assert ask(watched, answer) == [AGAIN]


def test_what_came_before_an_error_counts(ask):
    text = event("ADDED", item("a")) + event("ERROR", json.loads(REFUSAL)) + event("ADDED", item("b"))
    assert ask(watched, text) == [{"type": "ADDED", "object": item("a")}, AGAIN]


def test_a_watch_that_ends_is_no_error(ask):
    assert ask(watched, b"") == []


def test_what_was_deleted_between_two_lists_is_deleted_to_kopf(ask):
    async def story(session, url):
        await listed(session, url)
        await listed(session, url)
        return [await watched(session, url), await watched(session, url)]

    both, one, change = group_list(item("a"), item("b")), group_list(item("a")), event("MODIFIED", item("a"))
    modified = {"type": "MODIFIED", "object": item("a")}
    assert ask(story, both, one, change) == [[{"type": "DELETED", "object": item("b")}, modified], [modified]]


async def discovered(session, url):
    response = await session.get(url + "/apis/ray.io/v1")
    return response.status, await response.json()


def test_which_kinds_there_are_is_read_whole(ask):
    kinds = {"kind": "APIResourceList", "resources": [{"name": "rayclusters", "verbs": ["list"]}]}
    assert ask(discovered, kinds) == (200, kinds)
    assert ask(discovered, (REFUSAL, 404)) == (404, None)


@pytest.mark.parametrize(
    "answer", [(REFUSAL, 503), (REFUSAL, 429), b"<html>", b"", b"null", {}, REFUSAL, b"[" * 100_000]
)
def test_any_other_answer_to_which_kinds_there_are_is_no_connection(ask, answer):
    with pytest.raises(aiohttp.ClientConnectionError):
        ask(discovered, answer)
