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

    async def write_again(self, prefix: str) -> int:
        """Write all objects below a prefix again, in one transaction; return how many were written.

        None are if one of them was written meanwhile.
        """
        wanted = {"key": _encoded(prefix), "range_end": _encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}
        found = (await self._send("range", wanted)).get("kvs", [])
        unchanged = [{"key": read["key"], "target": "MOD", "mod_revision": read["mod_revision"]} for read in found]
        puts = [{"request_put": {"key": read["key"], "value": read["value"]}} for read in found]
        is_written = "succeeded" in await self._send("txn", {"compare": unchanged, "success": puts})
        return len(found) if is_written else 0

    async def _send(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        async with self._session.post(f"{self._url}/v3/kv/{what}", json=request, timeout=timeout) as answer:
            answer.raise_for_status()
            found: dict[str, Any] = await answer.json()
            return found


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
