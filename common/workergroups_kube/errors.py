"""What requests to the API server raise, and what the errors say."""

import json

import aiohttp
from kubernetes.aio.dynamic.exceptions import DynamicApiError

from workergroups_common.bounded_json import RefusedJson
from workergroups_common.path_segment import InvalidName


class ReplacedError(Exception):
    """The object that was meant is gone; another one may have its name."""


# What a call raises if the API server refuses, cannot be reached, does not answer, or breaks off its answer.
API_ERRORS = (
    DynamicApiError,
    InvalidName,
    ReplacedError,
    aiohttp.ClientError,
    json.JSONDecodeError,
    RefusedJson,
    OSError,
    TimeoutError,
)


class RefusedObject(RefusedJson):
    """An object exists, and exceeds a limit; `data` is its text, or its beginning if that is too long itself."""

    def __init__(self, message: str, data: bytes) -> None:
        super().__init__(message)
        self.data = data


def api_error_message(error: Exception) -> str:
    """Return the API server's own sentence, or what else is known of the failure."""
    if not isinstance(error, DynamicApiError):
        return str(error) or type(error).__name__
    try:
        message = error.summary()
    except (AttributeError, KeyError, ValueError, TypeError):
        message = None
    return str(message or f"{error.status} {error.reason}")


def is_refusal(error: Exception) -> bool:
    """Whether the request itself is wrong, so that the API server will refuse it again until something changes."""
    if isinstance(error, InvalidName):
        return True
    return isinstance(error, DynamicApiError) and error.status in (400, 403, 404, 405, 413, 422)


def invalid_fields(error: Exception) -> tuple[str, ...]:
    """Return the fields for which the API server has refused an object, such as `status.conditions`."""
    try:
        found = json.loads(error.body)["details"]["causes"] if isinstance(error, DynamicApiError) else ()
        return tuple(str(cause.get("field")) for cause in found)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()
