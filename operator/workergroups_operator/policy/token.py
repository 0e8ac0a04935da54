"""The token that is in a cluster's Secret, and with TLS the authority's key. Ray's pods read them when they start."""

import base64

from workergroups_api import names
from workergroups_api.launch import digest
from workergroups_api.manifest import SECRET
from workergroups_operator.observed import Observed


def present_token(observed: Observed) -> str | None:
    """Return the token in the Secret, encoded as it is; None if there is none."""
    return _present(observed, names.TOKEN_KEY)


def present_authority_key(observed: Observed) -> str | None:
    """Return the authority's key in the Secret, encoded as it is; None if there is none."""
    return _present(observed, names.AUTHORITY_KEY)


def _present(observed: Observed, key: str) -> str | None:
    secret = observed.child(SECRET, names.token_secret_name(observed.key.name)) or {}
    found = (secret.get("data") or {}).get(key)
    return str(found) if found else None


def encoded(token: str) -> str:
    """Return a token as a Secret holds it."""
    return base64.b64encode(token.encode()).decode()


def token_digest(token: str, authority_key: str | None = None) -> str:
    """Return a short name for a token, and with TLS for the authority's key, that does not reveal them."""
    return digest(["token", token] if authority_key is None else ["token", token, authority_key])
