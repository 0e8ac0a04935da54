"""Lists are read in pages that fit the limits; an object that does not fit is only named, and a large one read once."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from kubernetes.aio.client.configuration import Configuration

from workergroups_api.manifest import POD
from workergroups_common.bounded_json import Limits
from workergroups_kube import Kube, Page, RefusedObject, reading

PAGE_BYTES = 10_000
TOO_LARGE = 2 * PAGE_BYTES
# What is made of larger objects is kept.
KEPT_BYTES = 5_000
LARGE = PAGE_BYTES - 2_000


class Server:
    """Lists pods of these sizes in bytes, by name, and does nothing else."""

    def __init__(self, sizes, between=lambda sizes: None):
        self.sizes = dict(sizes)
        # What happens to the pods after each answer.
        self.between = between
        self.limits = []
        self.versions = {}
        # Bytes of each row's metadata.
        self.metadata = 10

    async def __call__(self, request):
        assert request.path == "/api/v1/namespaces/ns/pods", "only lists are allowed"
        query, limit = request.query, int(request.query["limit"])
        is_table = "as=Table" in request.headers["Accept"]
        self.limits += [] if is_table else [limit]
        version, after = query.get("continue", f"{query.get('resourceVersion', '')}/").split("/")
        assert ("resourceVersion" in query) == (query.get("resourceVersionMatch") == "Exact")
        version = version or str(len(self.versions))
        sizes = self.versions.setdefault(version, dict(self.sizes))
        names = [name for name in sorted(sizes) if name > after]
        names, rest = names[:limit], names[limit:]
        metadata = {"resourceVersion": version} | ({"continue": f"{version}/{names[-1]}"} if rest else {})
        rows = [{"cells": [name], "object": self.identity(name, sizes[name], query)} for name in names]
        items = [{"metadata": {"name": name}, "spec": "x" * sizes[name]} for name in names]
        self.between(self.sizes)
        return web.json_response({"metadata": metadata} | ({"rows": rows} if is_table else {"items": items}))

    def identity(self, name, size, query):
        """Return what a table has of an object. Here, its size is also its version."""
        if query.get("includeObject", "None") == "None":
            return None
        return {"metadata": {"uid": name, "resourceVersion": str(size), "annotations": {"a": "x" * self.metadata}}}


@pytest.fixture
def pages(monkeypatch):
    """Return the names that the pages of a server's pods have, and those that they refuse."""
    monkeypatch.setattr(reading, "PAGE_LIMITS", Limits(size=PAGE_BYTES, depth=10, values=1000))
    monkeypatch.setattr(reading, "_KEPT_BYTES", KEPT_BYTES)

    async def read(server, times):
        async with RawTestServer(server) as running:
            host = str(running.make_url("")).rstrip("/")
            async with Kube.to(Configuration(host=host), "test", 15.0) as client:
                for _ in range(times):
                    server.limits.clear()
                    found = [page async for page in client.pages(POD, "ns", name_of)]
        return [name for page in found for name in page.items], [name for page in found for name in page.refused]

    return lambda server, times=1: asyncio.run(read(server, times))


def name_of(body):
    return body["metadata"]["name"]


def pods(*sizes):
    return {f"p{number:03}": size for number, size in enumerate(sizes)}


def test_small_objects_come_in_whole_pages(pages):
    server = Server(pods(*[10] * 120))
    assert pages(server) == (sorted(server.sizes), [])
    assert server.limits == [50, 50, 50]


def test_of_no_objects_there_is_one_empty_page(pages):
    assert pages(Server({})) == ([], [])


def test_a_page_that_is_too_large_is_read_in_smaller_ones_and_the_next_pages_grow_again(pages):
    server = Server(pods(*[3_000] * 9, *[10] * 100))
    assert pages(server) == (sorted(server.sizes), [])
    assert server.limits == [50, 12, 3, 6, 1, 2, 4, 8, 16, 32, 50]


@pytest.mark.parametrize(("times", "limits"), [(2, [3, 6]), (3, [6, 12]), (4, [12, 3, 6])])
def test_a_list_whose_pages_were_too_large_begins_with_a_smaller_one_the_next_time(pages, times, limits):
    server = Server(pods(*[1_500] * 9))
    assert pages(server, times) == (sorted(server.sizes), [])
    assert server.limits == limits


@pytest.mark.parametrize("place", [0, 1, 30, 59])
def test_an_object_that_is_too_large_by_itself_is_named_and_its_neighbours_are_read(pages, place):
    server = Server(pods(*[10] * 60))
    server.sizes[f"p{place:03}"] = TOO_LARGE
    items, refused = pages(server)
    assert refused == [f"p{place:03}"]
    assert items == sorted(server.sizes.keys() - set(refused))


def test_all_may_be_too_large(pages):
    server = Server(pods(*[TOO_LARGE] * 3))
    assert pages(server) == ([], sorted(server.sizes))


def test_an_object_that_goes_while_it_is_read_takes_no_other_with_it(pages):
    server = Server(pods(TOO_LARGE, 10, 10), between=lambda sizes: sizes.pop("p000", None))
    items, refused = pages(server)
    assert items[-2:] == ["p001", "p002"]
    assert "p001" not in refused


@pytest.mark.parametrize("size", [LARGE, TOO_LARGE])
def test_each_version_of_a_large_object_is_read_once(pages, size):
    server = Server(pods(10, *[size] * 9, 10))
    assert pages(server, 2) == pages(server, 1)
    items, refused = pages(server, 2)
    assert sorted(items + refused) == sorted(server.sizes)
    assert server.limits == [1, 2, 1]  # the small ones, and one attempt with their neighbour


def test_a_large_object_that_changes_is_read_again(pages):
    sizes = [LARGE, LARGE + 1]
    server = Server(pods(LARGE, LARGE), between=lambda now: now.update(p001=sizes[len(server.versions) % 2]))
    assert pages(server, 5) == (["p000", "p001"], [])
    assert server.limits == [1]


@pytest.mark.parametrize("size", [LARGE, TOO_LARGE])
def test_large_metadata_do_not_keep_an_object_from_being_read_or_named(pages, size):
    server = Server(pods(10, *[size] * 3))
    server.metadata = TOO_LARGE
    items, refused = pages(server, 3)
    assert sorted(items + refused) == sorted(server.sizes)


class Listed(Kube):
    """Has these pages."""

    def __init__(self, *pages):
        self._pages = pages

    async def pages(self, *_, **__):
        for page in self._pages:
            yield page


def latest(*pages):
    return asyncio.run(Listed(*pages).latest(POD, "ns", dict, lambda item: item["at"]))


def test_the_latest_of_all_pages_is_found():
    assert latest(Page([{"at": "1"}, {"at": "3"}]), Page([{"at": "2"}])) == {"at": "3"}
    assert latest(Page()) is None


def test_nobody_knows_the_latest_if_one_exceeds_a_limit():
    with pytest.raises(RefusedObject, match="Pod b"):
        latest(Page([{"at": "1"}]), Page(refused=["b"]))
