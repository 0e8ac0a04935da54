"""The Secret with Ray's authentication token, which the operator creates once and keeps."""

from workergroups_api.manifest import Manifest
from workergroups_api.names import TOKEN_KEY, token_secret_name
from workergroups_operator.observed import Observed
from workergroups_operator.policy.token import encoded, present_token, token_digest


def secret(observed: Observed, fresh_token: str) -> Manifest:
    """Return the Secret with the existing token, or with the fresh one if none exists."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": token_secret_name(observed.key.name)},
        "type": "Opaque",
        "data": {TOKEN_KEY: present_token(observed) or encoded(fresh_token)},
    }


def digest_in(secret: Manifest) -> str:
    """Return a short name for the token in the Secret."""
    return token_digest(secret["data"][TOKEN_KEY])
