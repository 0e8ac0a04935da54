"""The Kubernetes client of the operator and the agent's reporter, which the operator's image has.

What the API server sends is read within limits, since users wrote most of it.
"""

from workergroups_kube.client import Kube
from workergroups_kube.errors import (
    API_ERRORS,
    RefusedObject,
    ReplacedError,
    api_error_message,
    invalid_fields,
    is_refusal,
)
from workergroups_kube.reading import OBJECT_LIMITS, Page

__all__ = [
    "API_ERRORS",
    "OBJECT_LIMITS",
    "Kube",
    "Page",
    "RefusedObject",
    "ReplacedError",
    "api_error_message",
    "invalid_fields",
    "is_refusal",
]
