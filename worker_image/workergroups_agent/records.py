"""Records as JSON, as in the GCS's key-value store. Users can write to it, so records are read within limits."""

import json
import logging
from typing import TypeVar

from workergroups_api.model import ApiModel
from workergroups_common.bounded_json import Limits, parse

LOGGER = logging.getLogger(__name__)

Record = TypeVar("Record", bound=ApiModel)


def dump(record: ApiModel) -> bytes:
    """Return the record as JSON."""
    # ASCII, since UTF-8 cannot hold half a surrogate pair.
    return json.dumps(record.to_json()).encode("ascii")


def read(model: type[Record], data: bytes | None, limits: Limits) -> Record | None:
    """Return the record, None if there is no value or it cannot be read."""
    if data is None:
        return None
    try:
        return model.model_validate(parse(data, limits))
    except (ValueError, RecursionError) as error:
        LOGGER.warning("a %s in the GCS cannot be read: %s", model.__name__, type(error).__name__)
        return None
