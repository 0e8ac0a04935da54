"""Users' actions: create, edit, annotate, delete and recreate pools, groups and code, in any order."""

import random
from collections.abc import Awaitable, Callable, Mapping

from tests.simulation.scene import Scene, condition
from tests.simulation.story import Story
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.vocabulary import Reason

_FOR_ITS_SIZE = "for its size"

Action = Callable[[], Awaitable[str | None]]


class Users:
    """Each action returns what it did, None if there was nothing to do."""

    def __init__(self, scene: Scene, story: Story, choices: random.Random) -> None:
        self.scene = scene
        self.story = story
        self.choices = choices

    def weights(self) -> dict[Action, int]:
        """Return the actions, and how often each comes."""
        return {
            self.create_pool: 6,
            self.create_group: 7,
            self.delete_pool: 2,
            self.delete_group: 2,
            self.make_pool_again: 3,
            self.make_group_again: 2,
            self.scale_pool: 5,
            self.edit_template: 3,
            self.edit_shape: 4,
            self.restart_pool: 4,
            self.edit_deadline: 2,
            self.edit_ranks: 4,
            self.edit_env: 2,
            self.edit_debug: 1,
            self.edit_code: 1,
            self.restart_group: 3,
            self.suspend: 4,
            self.write_code: 4,
        }

    async def create_pool(self) -> str | None:
        """Create a pool that does not exist."""
        absent = sorted(self.story.clusters.keys() - self.story.pools.keys())
        if not absent:
            return None
        name = self.choices.choice(absent)
        spec = self.story.new_pool(name)
        await self.scene.pool(name, **spec)
        return f"create pool {name} {spec}"

    async def create_group(self) -> str | None:
        """Create a group that does not exist."""
        absent = sorted(self.story.group_pools.keys() - self.story.groups.keys())
        if not absent:
            return None
        name = self.choices.choice(absent)
        spec = self.story.new_group(name)
        await self.scene.group(name, **spec)
        return f"create group {name} {spec}"

    async def delete_pool(self) -> str | None:
        """Delete a pool."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        del self.story.pools[name]
        await self.scene.delete(RESOURCE_POOL, name)
        return f"delete pool {name}"

    async def delete_group(self) -> str | None:
        """Delete a group."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        del self.story.groups[name]
        await self.scene.delete(WORKER_GROUP, name)
        return f"delete group {name}"

    async def make_pool_again(self) -> str | None:
        """Delete a pool, and create another with its name at once."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        await self.scene.delete(RESOURCE_POOL, name)
        spec = self.story.new_pool(name)
        await self.scene.pool(name, **spec)
        return f"delete and create pool {name} {spec}"

    async def make_group_again(self) -> str | None:
        """Delete a group, and create another with its name at once."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        await self.scene.delete(WORKER_GROUP, name)
        spec = self.story.new_group(name)
        await self.scene.group(name, **spec)
        return f"delete and create group {name} {spec}"

    async def scale_pool(self) -> str | None:
        """Change the number of a pool's nodes, as `kubectl scale` does."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        nodes = self.choices.randint(1, 3)
        self.story.pools[name].spec["nodes"] = nodes
        scale = {"spec": {"replicas": nodes}}
        await self.scene.api.merge(RESOURCE_POOL, self.scene.namespace, name, scale, "scale")
        return f"scale pool {name} to {nodes}"

    async def agree_on_sizes(self) -> list[str]:
        """Restart each group that has another size than its pool, once; delete it if it still holds nodes.

        Delete groups that are complete and whose pools are gone, too: they need none, unlike new ones of that spec.
        """
        pools = await self.scene.api.list(RESOURCE_POOL, self.scene.namespace)
        names = {pool["metadata"]["name"] for pool in pools}
        victims = {each["group"] for pool in pools for each in pool["status"].get("victims", ())}
        said = []
        for body in await self.scene.api.list(WORKER_GROUP, self.scene.namespace):
            name, annotations = body["metadata"]["name"], body["metadata"].get("annotations", {})
            is_restarted = annotations.get(RESTARTED_AT_ANNOTATION) == _FOR_ITS_SIZE
            lacks_pools = not {pool["name"] for pool in body["spec"]["pools"]} <= names
            is_over = lacks_pools and condition(body, "Complete").get("status") == "True"
            if is_over or (name in victims and is_restarted):
                del self.story.groups[name]
                await self.scene.delete(WORKER_GROUP, name)
                said.append(
                    f"delete group {name}, which {'is complete and lacks a pool' if is_over else 'holds nodes'}"
                )
            elif not is_restarted and (name in victims or condition(body, "UpToDate").get("reason") == Reason.OLD_SIZE):
                await self.scene.annotate(WORKER_GROUP, name, RESTARTED_AT_ANNOTATION, _FOR_ITS_SIZE)
                said.append(f"restart group {name}, which has another size than its pool")
        return said

    async def edit_template(self) -> str | None:
        """Replace the pod template, so that fields of the old one must disappear."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        plot = self.story.pools[name]
        template, plot.broken = self.story.template()
        plot.spec.pop("podTemplate", None)
        await self.scene.edit(RESOURCE_POOL, name, {"podTemplate": None})
        if template:
            plot.spec["podTemplate"] = template
            await self.scene.edit(RESOURCE_POOL, name, {"podTemplate": template})
        return f"template of pool {name}: {template}"

    async def edit_shape(self) -> str | None:
        """Change a field that only shapes pods, which must restart nothing."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        plot = self.story.pools[name]
        spec = self.story.shape()
        for field, value in spec.items():
            plot.spec.pop(field, None)
            if value is not None:
                plot.spec[field] = value
        await self.scene.edit(RESOURCE_POOL, name, spec)
        return f"shape of pool {name}: {spec}"

    async def restart_pool(self) -> str | None:
        """Request new nodes of a pool."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        value = str(self.choices.randint(1, 10**9))
        await self.scene.annotate(RESOURCE_POOL, name, RESTARTED_AT_ANNOTATION, value)
        return f"restart pool {name}: {value}"

    async def edit_deadline(self) -> str | None:
        """Change a deadline, which must have no effect."""
        kind, plots = self.choices.choice(((RESOURCE_POOL, self.story.pools), (WORKER_GROUP, self.story.groups)))
        name = self._one(plots)
        if name is None:
            return None
        spec = {"progressDeadlineSeconds": self.choices.randint(100, 900)}
        plots[name].spec |= spec
        await self.scene.edit(kind, name, spec)
        return f"edit {kind.kind} {name} {spec}"

    async def edit_ranks(self) -> str | None:
        """Change the class or its arguments, or replace the class by roles."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        spec = self.story.groups[name].spec
        ranks = self.story.ranks("run" not in spec)
        for field in ("worker", "roles"):
            spec.pop(field, None)
        spec |= ranks
        await self.scene.edit(WORKER_GROUP, name, {"worker": None, "roles": None} | ranks)
        return f"ranks of group {name}: {ranks}"

    async def edit_env(self) -> str | None:
        """Change the environment."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        env = [{"name": "A", "value": str(self.choices.randint(1, 3))}]
        self.story.groups[name].spec["env"] = env
        await self.scene.edit(WORKER_GROUP, name, {"env": env})
        return f"env of group {name}: {env}"

    async def edit_debug(self) -> str | None:
        """Change whether ranks pause before an exception leaves them."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        debug = self.choices.choice(("Disabled", "PostMortem"))
        self.story.groups[name].spec["debug"] = debug
        await self.scene.edit(WORKER_GROUP, name, {"debug": debug})
        return f"debug of group {name}: {debug}"

    async def edit_code(self) -> str | None:
        """Take the class from another ConfigMap, or from the image."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        spec = self.story.groups[name].spec
        spec.pop("code", None)
        code = self.choices.choice((None, {"configMap": {"name": self.story.choice_of_code()}}))
        if code is not None:
            spec["code"] = code
        await self.scene.edit(WORKER_GROUP, name, {"code": code})
        return f"code of group {name}: {code}"

    async def restart_group(self) -> str | None:
        """Request new ranks, as `kubectl annotate` does."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        value = str(self.choices.randint(1, 10**9))
        await self.scene.annotate(WORKER_GROUP, name, RESTARTED_AT_ANNOTATION, value)
        return f"restart group {name}: {value}"

    async def suspend(self) -> str | None:
        """Suspend a pool or a group, or resume it."""
        kind, plots = self.choices.choice(((RESOURCE_POOL, self.story.pools), (WORKER_GROUP, self.story.groups)))
        name = self._one(plots)
        if name is None:
            return None
        plot = plots[name]
        plot.spec["suspend"] = not plot.is_suspended
        await self.scene.edit(kind, name, {"suspend": plot.is_suspended})
        return f"{'suspend' if plot.is_suspended else 'resume'} {kind.kind} {name}"

    async def write_code(self) -> str | None:
        """Create or change a ConfigMap with code."""
        name = self.story.choice_of_code()
        self.story.code[name] = self.choices.randint(1, 4)
        await self.scene.code(name, train=f"VERSION = {self.story.code[name]}")
        return f"code {name}: {self.story.code[name]}"

    def _one(self, names: Mapping[str, object]) -> str | None:
        return self.choices.choice(sorted(names)) if names else None
