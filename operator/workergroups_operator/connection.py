"""kopf's connection to the API server.

kopf asks again when no answer comes, but ends when one breaks off while it reads what kinds there are. Over this
connection, half an answer is none.
"""

import asyncio
from typing import Any

import aiohttp
import kopf


async def connect(**arguments: Any) -> kopf.AiohttpSession:
    """Log in as kopf would by itself: as the pod's service account, or by a kubeconfig."""
    info = await asyncio.to_thread(kopf.login_via_client, **arguments)
    assert info is not None, "the kubernetes package is installed"
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        headers=info.as_http_headers(),
        trust_env=info.trust_env,
        middlewares=[_read_whole],
    )
    return kopf.AiohttpSession(server=info.server, aiohttp_session=session, priority=info.priority)


async def _read_whole(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    response = await handler(request)
    if "watch" in request.url.query:
        return response
    try:
        await response.read()
    except aiohttp.ClientPayloadError as error:
        raise aiohttp.ClientConnectionError(f"the answer broke off: {error}") from error
    return response
