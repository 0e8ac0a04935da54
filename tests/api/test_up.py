"""`workergroups up` as typed, against the API server: what it says that it will do, and that it does no more."""

import base64
import contextlib
import itertools
import json
import os
import pty
import signal
import subprocess
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest

from tests.cluster.command_line import CommandLine, read_until
from tests.simulation.api import Api
from workergroups_api.manifest import CONFIG_MAP

NUMBERS = itertools.count(1)


class Up:
    """`up` with objects, in its own namespace."""

    def __init__(self, runner, api, namespace, folder, environment):
        self._runner, self._api, self.namespace, self._environment = runner, api, namespace, environment
        self._command = CommandLine(SimpleNamespace(name=namespace), folder)
        self._file = folder / "all.yaml"

    def __call__(self, *manifests, code=0, words=()):
        self._write(manifests)
        printed = self._command("up", "-f", "all.yaml", *words, code=code, env=self._environment)
        return printed.replace(f"In namespace {self.namespace} (context c)", "Here").splitlines()

    def on_terminal(self, *manifests):
        """Start it on a terminal, and return the process and the terminal when it asks."""
        self._write(manifests)
        terminal, own = pty.openpty()
        streams = {"stdin": own, "stdout": own, "stderr": own, "env": self._environment}
        process = self._command.start("up", "-f", "all.yaml", **streams)
        os.close(own)
        read_until(terminal, "Apply? [y/N]")
        return process, terminal

    def data(self, name):
        found = self._runner.run(self._api.get(CONFIG_MAP, self.namespace, name))
        return None if found is None else found["data"]

    def apply(self, manifest):
        """As another tool."""
        of_test = {**manifest["metadata"], "namespace": self.namespace}
        self._runner.run(self._api.apply({**manifest, "metadata": of_test}, manager="kubectl"))

    def _write(self, manifests):
        self._file.write_text("\n---\n".join(map(json.dumps, manifests)))


@pytest.fixture
def up(access, runner, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(access.kubeconfig("admin")))
    stack, namespace = AsyncExitStack(), f"up-{os.getpid()}-{next(NUMBERS)}"

    async def start():
        api = await stack.enter_async_context(Api.connect(access))
        await api.create_namespace(namespace)
        stack.push_async_callback(api.delete_namespace, namespace)
        return api

    yield Up(runner, runner.run(start()), namespace, tmp_path, {**os.environ, "KUBECONFIG": str(path)})
    runner.run(stack.aclose())


def settings(name="settings", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pool(**spec):
    return {
        "apiVersion": "workergroups.dev/v1alpha1",
        "kind": "ResourcePool",
        "metadata": {"name": "ppo"},
        "spec": spec,
    }


def test_it_says_what_it_creates_changes_and_leaves(up):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    value = {"data": {"KEY": base64.b64encode(b"first").decode()}}
    assert up(settings(size="1"), {**secret, **value})[:3] == [
        "Here, this will:",
        "  create ConfigMap settings",
        "  create Secret keys",
    ]
    assert up(settings(size="1"), {**secret, **value})[0] == "Here, nothing changes"
    assert up(settings(size="2"), {**secret, "stringData": {"KEY": "second"}}, settings("more"))[:4] == [
        "Here, this will:",
        "  change ConfigMap settings (data.size: 1 -> 2)",
        "  change Secret keys (data.KEY)",
        "  create ConfigMap more",
    ]
    assert up.data("settings") == {"size": "2"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (pool(nodes=-1), "spec.nodes"),
        ({**pool(), "apiVersion": "absent.example/v1"}, "has no kind ResourcePool in absent.example/v1: install"),
        ({**pool(), "kind": "Absent"}, "has no kind Absent in workergroups.dev/v1alpha1: install"),
        (
            {**pool(), "kind": "ResourcePol"},
            "has no kind ResourcePol in workergroups.dev/v1alpha1: did you mean",
        ),
        (settings("there", size="1") | {"metadata": {"name": "there", "namespace": "absent"}}, '"absent" not found'),
        (settings("held", size="1"), "takes these fields over, and changes data.size: 0 -> 1"),
    ],
)
def test_nothing_is_applied_if_the_api_server_rejects_one_object(up, wrong, said):
    up.apply(settings("held", size="0"))
    (printed,) = up(settings(size="1"), wrong, code=1)
    assert printed.startswith("error: ")
    assert said in printed
    assert up.data("settings") is None


def test_a_namespace_may_come_with_its_objects(up):
    name = f"{up.namespace}-more"
    brought = settings(size="1") | {"metadata": {"name": "settings", "namespace": name}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert up(namespace, brought)[1:3] == [f"  create Namespace {name}", "  create ConfigMap settings"]


@pytest.mark.parametrize(("answer", "code", "data"), [("y\n", 0, {"size": "1"}), ("n\n", 1, None), (None, 130, None)])
def test_on_a_terminal_it_asks_first(up, answer, code, data):
    process, terminal = up.on_terminal(settings(size="1"))
    with process, os.fdopen(terminal, "wb", buffering=0) as keys:
        if answer is None:
            for _ in range(10):  # a signal that comes before it reads wakes nobody
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(3)
                    break
        else:
            keys.write(answer.encode())
        assert process.wait(30) == code
    assert up.data("settings") == data


def test_a_script_is_not_asked(up):
    assert "Apply?" not in "".join(up(settings(size="1")))
    assert up.data("settings") == {"size": "1"}
