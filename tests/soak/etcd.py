"""Writes objects again in etcd, as they are: the API server tells every watch of it, and pays for nothing else."""

import base64
from typing import Any

import aiohttp

# As long as requests of the API server to etcd, which share it.
SECONDS = 10.0


class Etcd:
    """etcd's JSON gateway. Keys and values in it are base64."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def write_again(self, key: str) -> bool:
        """Write an object's value again; return False if it has gone, or somebody wrote it meanwhile."""
        found = (await self._send("range", {"key": _encoded(key)})).get("kvs")
        if not found:
            return False
        (read,) = found
        unchanged = {"key": read["key"], "target": "MOD", "mod_revision": read["mod_revision"]}
        put = {"request_put": {"key": read["key"], "value": read["value"]}}
        return "succeeded" in await self._send("txn", {"compare": [unchanged], "success": [put]})

    async def _send(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        async with self._session.post(f"{self._url}/v3/kv/{what}", json=request, timeout=timeout) as answer:
            answer.raise_for_status()
            found: dict[str, Any] = await answer.json()
            return found


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
