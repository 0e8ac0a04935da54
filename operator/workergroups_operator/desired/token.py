"""The Secret with Ray's authentication token, and with TLS the authority's key, made by the operator once."""

import secrets
from typing import NamedTuple

from workergroups_api.manifest import SECRET, Manifest
from workergroups_api.names import AUTHORITY_KEY, TOKEN_KEY, token_secret_name
from workergroups_operator.observed import Observed
from workergroups_operator.policy.token import encoded, present_authority_key, present_token, token_digest


class FreshSecrets(NamedTuple):
    """What the Secret gets if it has none yet."""

    token: str
    # The authority's key, as a hexadecimal number.
    authority_key: str

    @classmethod
    def random(cls) -> "FreshSecrets":
        """Return secrets that nobody can guess."""
        return cls(secrets.token_urlsafe(32), secrets.token_hex(32))


def secret(observed: Observed, fresh: FreshSecrets) -> Manifest:
    """Return the Secret with what exists, or else with what is fresh."""
    data = {TOKEN_KEY: present_token(observed) or encoded(fresh.token)}
    if observed.uses_tls:
        data[AUTHORITY_KEY] = present_authority_key(observed) or encoded(fresh.authority_key)
    return SECRET.manifest({"name": token_secret_name(observed.key.name)}, type="Opaque", data=data)


def digest_in(secret: Manifest) -> str:
    """Return a short name for what is in the Secret."""
    return token_digest(secret["data"][TOKEN_KEY], secret["data"].get(AUTHORITY_KEY))
