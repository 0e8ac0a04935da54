"""Find pools and groups by their names, and the Ray clusters that they are on."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workergroups_api.manifest import POD, RESOURCE_POOL, SECRET, WORKER_GROUP, Kind, Manifest
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL, TOKEN_KEY, token_secret_name
from workergroups_api.references import cluster_of_pool, pools_of_group
from workergroups_api.vocabulary import Component

from ..errors import ClientError, ForbiddenError, NotFoundError, NotRunningError
from ..suggestions import did_you_mean

if TYPE_CHECKING:
    from ..api_server.cluster import Cluster

POOL, GROUP = "pool", "group"
_KINDS: dict[str, Kind] = {POOL: RESOURCE_POOL, GROUP: WORKER_GROUP}
_ALIASES = {
    **dict.fromkeys(("pool", "pools", "resourcepool", "resourcepools", "rpool"), POOL),
    **dict.fromkeys(("group", "groups", "workergroup", "workergroups", "wg"), GROUP),
}
# What a path of the API server may contain: anything else would name another object.
_PLAIN, _UNFIT = re.compile("[A-Za-z0-9]"), re.compile("[^-A-Za-z0-9._]")


@dataclass(frozen=True)
class Target:
    """An existing pool or group."""

    what: str
    """``pool`` or ``group``."""
    manifest: Manifest

    @property
    def kind(self) -> Kind:
        """The Kubernetes kind."""
        return _KINDS[self.what]

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return str(self.manifest["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        """The UID of the object."""
        return str(self.manifest["metadata"]["uid"])

    @property
    def generation(self) -> int:
        """The generation of the spec."""
        return int(self.manifest["metadata"].get("generation", 0))

    def __str__(self) -> str:
        return f"{self.what} {self.name}"


def as_target(manifest: Manifest) -> Target | None:
    """Return a pool or a group as a target; ``None`` for any other object."""
    kinds = {(kind.api_version, kind.kind): what for what, kind in _KINDS.items()}
    what = kinds.get((manifest["apiVersion"], manifest["kind"]))
    return Target(what, manifest) if what else None


def find(cluster: Cluster, name: str, *wanted: str) -> Target:
    """Return the first object of the name among the wanted kinds: by default the pool, else the group.

    Args:
        cluster: Where to look.
        name: ``NAME``, ``pool/NAME`` or ``group/NAME``.
        wanted: The kinds, in the order of preference.

    Raises:
        NotFoundError: There is no such object; the message names similar ones.
        ClientError: The name is of a kind that is not wanted.
    """
    found = find_all(cluster, name, *wanted)
    return found[0]


def find_all(cluster: Cluster, name: str, *wanted: str) -> list[Target]:
    """Return all objects of the name among the wanted kinds, at least one; see `find`."""
    kinds, plain = read_name(name, wanted or (POOL, GROUP))
    there = [(what, cluster.get(_KINDS[what], plain)) for what in kinds]
    found = [Target(what, manifest) for what, manifest in there if manifest is not None]
    if not found:
        raise NotFoundError(_what_there_is(cluster, plain, kinds))
    return found


def read_name(name: str, wanted: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the kinds to look for, and the name without its prefix.

    Raises:
        ClientError: It cannot be the name of an object, or is one of a kind that is not wanted.
    """
    prefix, slash, rest = name.rpartition("/")
    if not _PLAIN.search(rest) or _UNFIT.search(rest):
        raise ClientError(f"{name!r} cannot be a name: write the name of a pool or group, or pool/NAME or group/NAME")
    if not slash:
        return wanted, name
    what = _ALIASES.get(prefix.lower())
    if what is None:
        raise ClientError(f"{name}: write pool/NAME or group/NAME, or the name alone")
    if what not in wanted:
        raise ClientError(f"{name} names a {what}, but this needs a {wanted[0]}: write {wanted[0]}/NAME")
    return (what,), rest


def list_all(cluster: Cluster, *kinds: str, everywhere: bool = False) -> list[Target]:
    """Return all pools and groups, or only those of the given kinds, in the namespace or in all namespaces."""
    wanted = kinds or (POOL, GROUP)
    return [Target(what, each) for what in wanted for each in cluster.select(_KINDS[what], everywhere=everywhere)]


def none_here(cluster: Cluster, *, everywhere: bool = False) -> str:
    """Return the message for a namespace without pools and groups, with a namespace that has some."""
    if everywhere:
        return "no pools and no groups in any namespace: workergroups up -f FILE creates what FILE defines"
    return f"no pools and no groups in namespace {cluster.namespace}" + _elsewhere(cluster, _KINDS)


def ray_cluster(cluster: Cluster, target: Target) -> str:
    """Return the name of the RayCluster that a pool or group is on."""
    pool = first_pool(cluster, target) if target.what == GROUP else target
    return cluster_of_pool(pool.name, pool.manifest["spec"])


def pools_of(group: Target) -> tuple[str, ...]:
    """Return the names of the pools that a group is on, in rank order."""
    return pools_of_group(group.name, group.manifest["spec"])


def first_pool(cluster: Cluster, group: Target) -> Target:
    """Return the pool of a group's first ranks; the other pools of the group are on the same Ray cluster."""
    return find(cluster, f"{POOL}/{pools_of(group)[0]}", POOL)


def running_pods(cluster: Cluster, ray_cluster_name: str, component: Component) -> list[Manifest]:
    """Return the running pods of a component of a Ray cluster, without those that are being deleted."""
    return [
        pod
        for pod in all_pods(cluster, ray_cluster_name, component)
        if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
    ]


def all_pods(cluster: Cluster, ray_cluster_name: str, component: Component) -> list[Manifest]:
    """Return the pods of a component of a Ray cluster, also those that do not run yet or are being deleted."""
    return cluster.select(POD, f"{CLUSTER_LABEL}={ray_cluster_name},{COMPONENT_LABEL}={component}")


def token(cluster: Cluster, ray_cluster_name: str) -> str:
    """Return the token with which clients authenticate to Ray.

    Raises:
        NotRunningError: The operator has not created the Secret yet.
    """
    secret = cluster.get(SECRET, token_secret_name(ray_cluster_name))
    if secret is None:
        raise NotRunningError(
            f"Secret {token_secret_name(ray_cluster_name)} with Ray's token does not exist in namespace "
            f"{cluster.namespace}: workergroups status says what the pool waits for"
        )
    return b64decode(secret["data"][TOKEN_KEY]).decode()


def _what_there_is(cluster: Cluster, name: str, kinds: tuple[str, ...]) -> str:
    """Return the message for a name that does not exist: with similar names, else all names, else another namespace."""
    nothing = f"there is no {' or '.join(kinds)} {name} in namespace {cluster.namespace}"
    names = sorted({target.name for target in list_all(cluster, *kinds)})
    if near := did_you_mean(name, names):
        return f"{nothing}; {near}"
    if names:
        elsewhere: list[str] = []
        with suppress(ClientError):
            elsewhere = _namespaces_with(cluster, kinds, name)[:1]
        way = "".join(f"; one in namespace {each}: add -n {each}" for each in elsewhere)
        return f"{nothing}; there {'is' if len(names) == 1 else 'are'} {', '.join(names)}{way}"
    return f"{nothing}, nor any other" + _elsewhere(cluster, kinds, name)


def _elsewhere(cluster: Cluster, kinds: Iterable[str], name: str | None = None) -> str:
    """Return the end of a message: a namespace with such objects, or with those of that name, or what to do without."""
    try:
        namespaces = _namespaces_with(cluster, kinds, name)
    except ForbiddenError:
        return "; you may not list those of other namespaces: if you know a namespace, add -n NAMESPACE"
    except ClientError as error:
        return f"; those of other namespaces cannot be listed: {error}"
    if not namespaces:
        of_name = "has one of this name" if name else "has any"
        return f"; no other namespace {of_name}: workergroups up -f FILE creates what FILE defines"
    some = "there is one" if name else "there are some"
    return f"; {some} in namespace {namespaces[0]}: add -n {namespaces[0]}"


def _namespaces_with(cluster: Cluster, kinds: Iterable[str], name: str | None) -> list[str]:
    """Return the namespaces that have such objects, or those of that name."""
    found = [each["metadata"] for what in kinds for each in cluster.select(_KINDS[what], everywhere=True)]
    return [str(metadata["namespace"]) for metadata in found if name in (None, metadata["name"])]
