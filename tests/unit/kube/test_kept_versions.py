"""Of a large object, each version is read once, whatever it costs to read; small ones are read each time."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from kubernetes.aio.client.configuration import Configuration

from workergroups_api.manifest import WORKER_GROUP
from workergroups_common.bounded_json import Limits
from workergroups_kube import Kube, RefusedObject, reading

SMALL, LARGE, TOO_LARGE = 100, 100_000, 200_000


class Server:
    """Has groups with a text of some size; `change` is called before each answer."""

    def __init__(self, size, change=lambda server: None):
        self.size, self.uid, self.version, self.exists = size, "u", 1, True
        self.change = change
        # The group that is looked at next, and those that were read as a whole.
        self.name, self.reads = "a", []
        # Of its metadata, who wrote which field.
        self.managed = ""

    async def __call__(self, request):
        self.change(self)
        if not self.exists:
            return web.json_response({"kind": "Status", "message": "not found", "code": 404}, status=404)
        metadata = {"uid": self.uid, "resourceVersion": str(self.version), "managedFields": self.managed}
        if "PartialObjectMetadata" in request.headers["Accept"]:
            return web.json_response({"metadata": metadata})
        self.reads.append(request.path.rpartition("/")[2])
        return web.json_response({"metadata": metadata, "spec": f"{self.version}" + "x" * self.size})


@pytest.fixture
def read(monkeypatch):
    """Return what was made of a server's group at each of some looks; between them, something happens to it."""
    monkeypatch.setattr(reading, "OBJECT_LIMITS", Limits(size=150_000, depth=10, values=1000))

    async def make(found):
        return "refused" if isinstance(found, RefusedObject) else found["spec"][0]

    async def looks(server, between):
        async with RawTestServer(server) as running:
            host = str(running.make_url("")).rstrip("/")
            async with Kube.to(Configuration(host=host), "test", 15.0) as client:
                seen = []
                for happens in (*between, lambda _: None):
                    seen.append(await client.get_made(WORKER_GROUP, "ns", server.name, make))
                    happens(server)
                return seen

    return lambda server, *between: asyncio.run(looks(server, between))


def nothing(_):
    pass


def edited(server):
    server.version += 1


def recreated(server):
    server.uid = "other"


def deleted(server):
    server.exists = False


@pytest.mark.parametrize(
    ("size", "between", "seen", "reads"),
    [
        (SMALL, [nothing, nothing], ["1", "1", "1"], 3),
        (LARGE, [nothing, nothing], ["1", "1", "1"], 1),
        (LARGE, [edited, nothing, edited], ["1", "2", "2", "3"], 3),
        (LARGE, [recreated, nothing], ["1", "1", "1"], 2),
        (LARGE, [deleted, nothing], ["1", None, None], 1),
        # The first time, it is read again after its version, which only then is known.
        (TOO_LARGE, [nothing, nothing], ["refused"] * 3, 2),
        (TOO_LARGE, [edited, nothing], ["refused"] * 3, 4),
    ],
)
def test_a_version_is_read_as_often_as_necessary(read, size, between, seen, reads):
    server = Server(size)
    assert read(server, *between) == seen
    assert len(server.reads) == reads


def test_what_changes_while_it_is_read_is_read_again(read):
    """Each answer is about another version, so none may be kept."""
    assert read(Server(LARGE, edited), nothing, nothing) == ["2", "4", "6"]


def test_what_shrinks_while_it_is_read_is_seen(read):
    def shrinks(server):
        server.size = LARGE if server.reads else TOO_LARGE

    assert read(Server(TOO_LARGE, shrinks), nothing) == ["1", "1"]


def then(name):
    return lambda server: setattr(server, "name", name)


def test_the_objects_that_were_used_last_are_kept(read, monkeypatch):
    monkeypatch.setattr(reading, "_KEPT_OBJECTS", 2)
    server = Server(LARGE)
    assert read(server, then("b"), then("a"), then("c"), then("a"), then("b")) == ["1"] * 6
    assert server.reads == ["a", "b", "c", "b"]


def test_an_object_of_which_even_the_metadata_are_too_large_is_refused_and_not_an_error(read):
    server = Server(TOO_LARGE)
    server.managed = "x" * TOO_LARGE
    assert read(server, nothing, edited) == ["refused"] * 3
