"""The token that is in a cluster's Secret. Ray's pods read it once, when they start."""

import base64

from workergroups_api import names
from workergroups_api.launch import digest
from workergroups_api.manifest import SECRET
from workergroups_operator.observed import Observed


def present_token(observed: Observed) -> str | None:
    """Return the token in the Secret, encoded as it is; None if there is none."""
    secret = observed.child(SECRET, names.token_secret_name(observed.key.name)) or {}
    token = (secret.get("data") or {}).get(names.TOKEN_KEY)
    return str(token) if token else None


def encoded(token: str) -> str:
    """Return a token as a Secret holds it."""
    return base64.b64encode(token.encode()).decode()


def token_digest(token: str) -> str:
    """Return a short name for a token that does not reveal it."""
    return digest(["token", token])
