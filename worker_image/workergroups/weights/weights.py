"""`Weights`: the weights of a model that a rank publishes to other ranks, or receives from them."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import ray
from ray.exceptions import RayError

from workergroups.announcements import held_weights
from workergroups.announcements.held_weights import HeldWeights
from workergroups.errors import InvalidValueError, WeightsError
from workergroups.lazy import torch
from workergroups.processes import named_ranks
from workergroups.transfers.fetching import node, process_name
from workergroups.transfers.memory import memory_for, settle
from workergroups.transfers.transports import Lease

from .parts import Part, held, parts_of
from .peers import Offered, known_to_peers
from .planning import Plans, Sources
from .published import HeldShard, Passport, PublishedWeights
from .reading import buckets, checked, read_parts, unchanged

logger = logging.getLogger(__name__)

_TIMEOUT = 300.0
_ATTEMPTS, _PAUSE_SECONDS = 3, 1.0
"""How often peers are asked that change their weights meanwhile, or end."""
_MODEL = re.compile(r"[A-Za-z0-9._-]{1,63}", re.ASCII)


_SHARED: WeakValueDictionary[str, Weights] = WeakValueDictionary()
"""What peers can read of this process, by model."""


class Weights:
    """The weights of one model in this process, which others read, or which are read from others.

    Trainer ranks publish after a step, and the driver passes on what they return to the rollout ranks. The weights
    themselves go from shard to shard, and from device to device where that is possible. Rollout ranks read the
    trainer's own memory, so they must have received it before the next step.

    Args:
        model: What the model is called in the group's status: up to 63 letters, digits, ``.``, ``_`` and ``-``.

    Attributes:
        passport: Which weights were published or received last; ``None`` before that, and while they are received.
    """

    def __init__(self, model: str = "model") -> None:
        if not _MODEL.fullmatch(model):
            raise InvalidValueError(f"a model's name has 1 to 63 letters, digits, '.', '_' and '-', not {model!r}")
        self.model = model
        self.passport: Passport | None = None
        self._version = 0
        self._lease: Lease | None = None
        self._offered: Offered | None = None
        self._copies: dict[str, Any] = {}
        self._plans = Plans()

    def publish(
        self, tensors: Mapping[str, Any] | Iterable[tuple[str, Any]], *, version: int | None = None, dtype: Any = None
    ) -> PublishedWeights:
        """Let other processes read these tensors, until this is called again.

        Call it on every rank that has a part of the model, such as with `Dispatch.ONE_TO_ALL`. If there are replicas,
        readers spread over them.

        Args:
            tensors: A state dict, or pairs of name and tensor. A DTensor or `WeightShard` is this rank's part, and
                another tensor is whole. They must not change until they have been received.
            version: The number of these weights, the same on all ranks; by default, one more than the last ones have.
            dtype: Publish floating-point tensors as this type. The copies remain in the device's memory.

        Raises:
            TypeError: A value is no tensor, or of a type that cannot be published.
            WeightsError: A part does not fit into its tensor, or the tensors are on several kinds of devices.
        """
        given = parts_of(tensors)
        version = self._version + 1 if version is None else version
        if not 0 <= version < 2**63:
            raise InvalidValueError(f"version is a number from 0 to 2**63 - 1, not {version}")
        settle(part.local for part in given.values())  # before copies and digests: another stream may still write
        parts = {name: self._readable(name, part, dtype) for name, part in given.items()}
        passport = self._passport(version, held(parts))
        lease = Lease([part.local for part in parts.values()], by_nixl=True)
        if self._lease is not None:
            self._lease.release()
        self._lease, self._version, self.passport = lease, version, passport
        self._copies = {name: copy for name, copy in self._copies.items() if name in parts}
        published = PublishedWeights(passport, node(), lease.address)
        self._record(passport, Offered(published) if self._has_peers() else None)
        return published

    def receive(
        self, published: Sequence[PublishedWeights | None], into: Mapping[str, Any], *, timeout: float = _TIMEOUT
    ) -> Passport:
        """Read published weights into tensors of this process.

        Args:
            published: What `publish` returned on the ranks that have them, and ``None`` of ranks that have none.
            into: What to fill: tensors, DTensors or `WeightShard` by name. Only these are read, of each only the part
                that is needed here, and only if it has changed since the last time. Types are converted.
            timeout: Seconds until all must have arrived.

        Raises:
            WeightsError: The ranks published other names or shapes, or different versions; one of them cannot be
                read; or other bits arrived than were published. Then receive all again: some may be overwritten.
        """
        return self._receive(self._sources(published), parts_of(into), time.monotonic() + timeout)

    def receive_from_peers(self, into: Mapping[str, Any], *, timeout: float = _TIMEOUT) -> Passport | None:
        """Read the weights that the other ranks of this WorkerGroup hold, in a rank that was created alone after them.

        With ``failurePolicy.restart: Rank``, call it in the constructor: the group is Ready when the new rank has its
        weights. It reads the newest version that the others have published or received, and have all parts of. From
        now on, its peers can read what this rank holds: tensors that it receives are kept until it receives others.

        Args:
            into: What to fill, as of `receive`.
            timeout: Seconds until all must have arrived.

        Returns:
            ``None`` if there are no such weights: the rank was created with all others, or what they hold is not
            whole, is cut otherwise or of another type, or changes. Then load a checkpoint: some tensors may be
            overwritten.

        Raises:
            InvalidValueError: There are no tensors, or another model of this process has the same name.
        """
        parts, deadline = parts_of(into), time.monotonic() + timeout
        if not parts:
            raise InvalidValueError("into has no tensors")
        if _SHARED.setdefault(self.model, self) is not self:
            raise InvalidValueError(
                f"another Weights of this process that is called {self.model!r} receives from its peers as well: give "
                "each model its own name, such as Weights('critic')"
            )
        for attempt in range(_ATTEMPTS):
            time.sleep(_PAUSE_SECONDS if attempt else 0)
            try:
                sources = self._of_peers(parts, deadline)
                return None if sources is None else self._receive(sources, parts, deadline)
            except (WeightsError, RayError) as error:
                logger.warning("%s: the other ranks' weights were not received: %s", self.model, error)
        return None

    def _of_peers(self, parts: Mapping[str, Part], deadline: float) -> Sources | None:
        """Return which peers have all these parts, so that their digests tell whether they arrived."""
        why = ""
        for published in known_to_peers(self.model, deadline):
            try:
                sources = self._sources(published)
                unknown = [name for name, part in parts.items() if sources.digest(part.wanted) is None]
            except WeightsError as error:
                why = str(error)  # others may have what is missing
                continue
            if not unknown:
                return sources
            why = f"{unknown[0]!r} has another type there, or is cut otherwise: a change meanwhile would not be seen"
        if why:
            logger.warning("%s: the other ranks' weights are not what this rank needs: %s", self.model, why)
        return None

    def _receive(self, sources: Sources, parts: Mapping[str, Part], deadline: float) -> Passport:
        before = self._overwritten()
        settle(part.local for part in parts.values())  # what is not read is digested, too
        same = unchanged(sources, parts, () if before is None else before.shards)
        read_parts(sources, {name: part for name, part in parts.items() if name not in same}, deadline)
        shards = {shard.name: shard for shard in held(parts)}
        # What had arrived before may have been changed here since, or be another tensor.
        again = {name: parts[name] for name, shard in shards.items() if same.get(name, shard) != shard}
        if again:
            read_parts(sources, again, deadline)
            shards |= {shard.name: shard for shard in held(again)}
        checked(sources, shards.values())
        self._version = sources.version
        self.passport = self._passport(sources.version, tuple(shards.values()))
        self._record(self.passport, Offered.received(self.passport, parts) if self._has_peers() else None)
        return self.passport

    def stream(
        self, published: Sequence[PublishedWeights | None], *, device: Any = "cuda", timeout: float = _TIMEOUT
    ) -> Iterator[tuple[str, Any]]:
        """Read published weights, and yield each name with its whole tensor, for an engine's ``load_weights``.

        They are read in buckets of 512 MiB. After the last one, `passport` tells what was read, but not what the engine
        made of it.

        Args:
            published: What `publish` returned on the ranks that have them, and ``None`` of ranks that have none.
            device: Where the tensors are yielded.
            timeout: Seconds until all of a bucket must have arrived.

        Raises:
            WeightsError: As `receive`.
        """
        self._overwritten()
        sources = self._sources(published)
        shards: list[HeldShard] = []
        for bucket in buckets(sources.wholes, lambda whole: whole.region.elements * whole.dtype.itemsize):
            memory = memory_for([(whole.dtype, whole.region.elements) for whole in bucket], device)
            parts = {
                whole.name: Part(flat.view(whole.shape), whole) for whole, flat in zip(bucket, memory, strict=True)
            }
            read_parts(sources, parts, time.monotonic() + timeout)
            arrived = held(parts)
            checked(sources, arrived)
            shards += arrived
            yield from ((name, part.local) for name, part in parts.items())
            del memory, parts  # before there is memory for the next ones
        self._version = sources.version
        self.passport = self._passport(sources.version, tuple(shards))
        self._record(self.passport, None)

    def close(self) -> None:
        """Let nobody read what was published, and give up the copies that were made for it."""
        if self._lease is not None:
            self._lease.release()
        self._lease = None
        self._withdraw()
        self._copies.clear()

    def _sources(self, published: Sequence[PublishedWeights | None]) -> Sources:
        return Sources(published, node(), int(os.environ.get("RANK", "0")), self._plans)

    def _has_peers(self) -> bool:
        return _SHARED.get(self.model) is self and named_ranks.own() is not None

    def _overwritten(self) -> Passport | None:
        """Return which weights there were until now."""
        before, self.passport = self.passport, None
        self._withdraw()
        return before

    def _withdraw(self) -> None:
        if self._offered is not None:
            self._offered.release()
        self._offered = None

    def _passport(self, version: int, shards: tuple[HeldShard, ...]) -> Passport:
        return Passport.of(*process_name(), version, shards)

    def _record(self, passport: Passport, offered: Offered | None) -> None:
        """Tell the group's status which weights these are, and its ranks where they are."""
        self._withdraw()
        self._offered = offered
        actor_id = ray.get_runtime_context().get_actor_id() if ray.is_initialized() else None
        if actor_id is not None and _SHARED.get(self.model, self) is self:
            offer = None if offered is None else offered.offer
            held_now = HeldWeights(passport.version, passport.layout, passport.digest, offer)
            held_weights.record(actor_id, self.model, held_now)

    def _readable(self, name: str, part: Part, dtype: Any) -> Part:
        """Return a part in contiguous memory and of the wanted type; a copy, if needed, is kept for next time."""
        wanted = part.wanted
        if dtype is not None and part.local.is_floating_point():
            wanted = wanted._replace(dtype=dtype)
        if part.local.is_contiguous() and wanted.dtype == part.local.dtype:
            return part
        copy = self._copies.get(name)
        if copy is None or (copy.shape, copy.dtype, copy.device) != (part.local.shape, wanted.dtype, part.local.device):
            copy = torch.empty(part.local.shape, dtype=wanted.dtype, device=part.local.device)
        with torch.inference_mode():  # a copy that was made in it is written to only in it
            self._copies[name] = copy.copy_(part.local)
        return Part(copy, wanted)
