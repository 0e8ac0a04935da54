"""Follow the plan and the ConfigMaps that it names, and hand both to the executor whenever one changes."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator

from kubernetes.aio.dynamic.exceptions import DynamicApiError

from workergroups_agent.exchange import Exchange
from workergroups_api.kube import CONFIG_MAP, Kube, api_error_message
from workergroups_api.names import PLAN_KEY, plan_name
from workergroups_api.plan import ClusterPlan, Orders

LOGGER = logging.getLogger(__name__)
RESYNC_SECONDS = 300
RETRY_SECONDS = 0.5


class OrderKeeper:
    """The plan and its code as the API server has them, in the executor's hands."""

    def __init__(self, client: Kube, namespace: str, cluster: str, exchange: Exchange) -> None:
        self._client = client
        self._namespace = namespace
        self._cluster = cluster
        self._exchange = exchange
        self._plan: ClusterPlan | None = None
        # Files by ConfigMap; None where there is no such ConfigMap.
        self._code: dict[str, dict[str, str] | None] = {}
        self._written: Orders | None = None

    async def follow(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            followers: dict[str, asyncio.Task[None]] = {}
            async for data in self._versions(plan_name(self._cluster)):
                if data is None:
                    continue
                self._plan = ClusterPlan.model_validate(json.loads(data[PLAN_KEY]))
                named = {group.config_map for group in self._plan.groups if group.config_map}
                for name in followers.keys() - named:
                    followers.pop(name).cancel()
                    self._code.pop(name, None)
                for name in named - followers.keys():
                    followers[name] = tasks.create_task(self._follow_code(name))
                self._hand_over()

    async def _follow_code(self, name: str) -> None:
        async for data in self._versions(name):
            self._code[name] = data
            self._hand_over()

    def _hand_over(self) -> None:
        named = {group.config_map for group in self._plan.groups if group.config_map} if self._plan else set()
        if self._plan is None or not named <= self._code.keys():
            return
        orders = Orders(plan=self._plan, code={name: files for name, files in self._code.items() if files is not None})
        if orders != self._written:
            self._exchange.write_orders(orders)
            self._written = orders

    async def _versions(self, config_map: str) -> AsyncIterator[dict[str, str] | None]:
        """The ConfigMap's data now and after each change, None while it does not exist; survives the API's failures."""
        while True:
            try:
                async for found in self._client.follow(CONFIG_MAP, self._namespace, config_map, RESYNC_SECONDS):
                    yield None if found is None else dict(found.get("data") or {})
            except DynamicApiError as error:
                LOGGER.warning("ConfigMap %s: %s", config_map, api_error_message(error))
            except (OSError, TimeoutError) as error:
                LOGGER.warning("ConfigMap %s: %r", config_map, error)
            await asyncio.sleep(RETRY_SECONDS)
