"""Read which weights ranks hold, from time to time: they change with each step of a training."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from workergroups.announcements import held_weights
from workergroups.announcements.held_weights import HeldWeights
from workergroups.ray_private.gcs import Gcs

READ_SECONDS = 5.0

ByModel = Mapping[str, HeldWeights]


@dataclass(frozen=True)
class RecordedWeights:
    """What ranks hold, by actor id and model."""

    now: Mapping[str, ByModel] = field(default_factory=dict)
    # The time before, so that a rank is not called late that is only a moment behind the others.
    before: Mapping[str, ByModel] = field(default_factory=dict)


class WeightsReader:
    """Looks at one GCS."""

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs
        self._recorded = RecordedWeights()
        self._read_at = -READ_SECONDS

    def read(self, actor_ids: Collection[str]) -> RecordedWeights:
        """Return what these ranks hold."""
        now = time.monotonic()
        if now - self._read_at >= READ_SECONDS:
            known = set(actor_ids).intersection(self._gcs.keys(held_weights.KV_NAMESPACE))
            written = self._gcs.get_many(held_weights.KV_NAMESPACE, known) if known else {}
            found = {actor_id: held_weights.read(data) for actor_id, data in sorted(written.items())}
            self._recorded, self._read_at = RecordedWeights(found, self._recorded.now), now
        return self._recorded
