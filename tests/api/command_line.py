"""The command line as its own process, in the namespace of a scene, through the scene's proxy."""

import asyncio
import json
import os
import pty
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT

from tests.simulation.control_plane import kubeconfig

CLIENT = "command line"
SECONDS = 60
INTERRUPTED = 130


class CommandLine:
    """Runs the command; the proxy knows its requests as those of `CLIENT`."""

    def __init__(self, scene, access, folder):
        self._scene, self.folder, self._token = scene, folder, access.tokens["admin"]

    async def as_account(self, name, rules=()):
        """Use the token of a new ServiceAccount from now on, which may do this in the scene's namespace."""
        api, namespace = self._scene.api, self._scene.namespace
        group, metadata = "rbac.authorization.k8s.io", {"name": name, "namespace": namespace}
        await api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        common = {"apiVersion": f"{group}/v1", "metadata": metadata}
        await api.create({**common, "kind": "Role", "rules": list(rules)})
        role, who = {"apiGroup": group, "kind": "Role", "name": name}, {"kind": "ServiceAccount", **metadata}
        await api.create({**common, "kind": "RoleBinding", "roleRef": role, "subjects": [who]})
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = await api.request("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
        self._token = answer["status"]["token"]

    async def start(self, *words, terminal=None, **environment):
        """Start it; output and errors are one stream, or those of a terminal."""
        path = self.folder / "kubeconfig"
        config = kubeconfig({"server": await self._scene.proxy.listen(CLIENT)}, self._token)
        config["contexts"][0]["context"]["namespace"] = self._scene.namespace
        path.write_text(json.dumps(config))
        variables = {"KUBECONFIG": str(path), "PATH": "/usr/bin:/bin", **environment}
        # The kernel kills it when the test ends. A program that a shell starts in the background ignores SIGINT.
        own = ("env", "--default-signal=INT", "setpriv", "--pdeathsig=KILL")
        command = (*own, sys.executable, "-m", "workergroups_cli", *words)
        streams = {"stdin": DEVNULL, "stdout": PIPE} if terminal is None else {"stdin": terminal, "stdout": terminal}
        return await asyncio.create_subprocess_exec(*command, **streams, stderr=STDOUT, cwd=self.folder, env=variables)

    async def __call__(self, *words, code=0, **environment):
        """Run it to its end, and return what it prints."""
        process = await self.start(*words, **environment)
        printed, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        text = printed.decode()
        assert process.returncode == code, text
        return text


async def read_until(process, words):
    """Return what it prints until a line with these words has come."""
    seen = ""
    while words not in seen:
        line = await asyncio.wait_for(process.stdout.readline(), SECONDS)
        assert line, f"it has ended without {words!r}: {seen}"
        seen += line.decode()
    return seen


class Terminal:
    """A terminal, and what was written to it."""

    def __init__(self):
        self._own, self.device = pty.openpty()

    async def until(self, words):
        """Return what is written from now until these words have come."""
        seen = b""
        while words.encode() not in seen:
            seen += await asyncio.wait_for(asyncio.to_thread(os.read, self._own, 1 << 16), SECONDS)
        return seen.decode()

    def type(self, keys):
        """Press keys."""
        os.write(self._own, keys.encode())

    def close(self):
        """Take it away."""
        os.close(self._own)
        os.close(self.device)
