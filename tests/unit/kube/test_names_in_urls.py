"""Whatever names an object, a request goes to that object or nowhere."""

import asyncio

import pytest
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from workergroups_api.manifest import CONFIG_MAP, RESOURCE_POOL
from workergroups_common.path_segment import InvalidName
from workergroups_kube import API_ERRORS, Kube, is_refusal

NAMES = [
    "../../../../api/v1/namespaces/ns/configmaps/x?a=",
    "..",
    ".",
    "a/b",
    "a%2Fb",
    "a?b",
    "a#b",
    "a\nb",
    "a\n",
    "\0",
    "é",
    "\ud800",
    "x" * 300,
]


def ask(question):
    async def main():
        async with ApiClient(Configuration(host="http://127.0.0.1:1")) as api:
            await question(Kube(api, "test", 15.0))

    asyncio.run(main())


def manifest(name="a", namespace="ns"):
    metadata = {"name": name, "namespace": namespace, "uid": "u"}
    return {"apiVersion": RESOURCE_POOL.api_version, "kind": RESOURCE_POOL.kind, "metadata": metadata}


@pytest.mark.parametrize("odd", NAMES)
def test_what_is_no_name_never_becomes_a_part_of_a_url(odd):
    questions = [
        lambda kube: kube.get(CONFIG_MAP, "ns", odd),
        lambda kube: kube.get(CONFIG_MAP, odd, "a"),
        lambda kube: kube.apply(manifest(odd)),
        lambda kube: kube.apply_status(manifest(odd)),
        lambda kube: kube.apply_status(manifest(namespace=odd)),
        lambda kube: kube.delete(manifest(odd)),
    ]
    for question in questions:
        with pytest.raises(InvalidName, match="is not a valid object name") as raised:
            ask(question)
        assert isinstance(raised.value, API_ERRORS)
        assert is_refusal(raised.value)


@pytest.mark.parametrize("name", ["a", "actors-1.example", "system:node", "0"])
def test_a_name_is_asked_for(name):
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        ask(lambda kube: kube.get(CONFIG_MAP, "ns", name))
