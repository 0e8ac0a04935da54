"""Reads of one namespace do not wait for those of another, however many and large these are."""

import asyncio
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from kubernetes.aio.client.configuration import Configuration

from workergroups_api.manifest import CONFIG_MAP, NODE
from workergroups_kube import Kube

SMALL, LARGE = 100, 400_000
GREEDY_READS, MODEST_READS = 100, 10
# A read of one namespace waits for one of the other's, or for two if it has to ask again.
BOUND = 3 * MODEST_READS


class Server:
    """Has ConfigMaps whose names are their sizes."""

    def __init__(self):
        self.most = 0
        self._open = 0

    async def __call__(self, request):
        self._open += 1
        self.most = max(self.most, self._open)
        body = json.dumps({"metadata": {"name": "a"}, "data": {"key": "x" * int(request.path.rpartition("/")[2])}})
        response = web.StreamResponse()
        try:
            await response.prepare(request)
            await response.write(body.encode())
            await response.write_eof()
        except ConnectionError:
            pass
        finally:
            self._open -= 1
        return response


async def read(client, namespace, size, kind=CONFIG_MAP):
    if kind.is_namespaced:
        found = await client.get(kind, namespace, str(size))
    else:
        found = await client.get(kind, None, str(size), on_behalf_of=namespace)
    assert len(found["data"]["key"]) == size


def read_beside_the_greedy(size, kind=CONFIG_MAP):
    """How many of the greedy namespace's reads end while another one reads such objects, and the most at once."""

    async def main():
        server, ended = Server(), []
        async with (
            RawTestServer(server) as running,
            Kube.to(Configuration(host=str(running.make_url("")).rstrip("/")), "test", 60.0) as client,
        ):
            reads = [asyncio.create_task(read(client, "greedy", LARGE, kind)) for _ in range(GREEDY_READS)]
            for each in reads:
                each.add_done_callback(ended.append)
            await asyncio.sleep(0)
            before = len(ended)
            for _ in range(MODEST_READS):
                await read(client, "modest", size, kind)
            meanwhile = len(ended) - before
            await asyncio.gather(*reads)
            return meanwhile, server.most

    return asyncio.run(main())


@pytest.mark.parametrize(("size", "kind"), [(SMALL, CONFIG_MAP), (LARGE, CONFIG_MAP), (SMALL, NODE)])
def test_a_namespace_waits_for_few_reads_of_one_that_reads_many_large_objects(size, kind):
    meanwhile, _ = read_beside_the_greedy(size, kind)
    assert meanwhile <= BOUND


def test_few_answers_are_open_at_once_whoever_reads():
    """Each needs buffers; those that wait for others have none."""
    _, most = read_beside_the_greedy(LARGE)
    assert most <= 17
