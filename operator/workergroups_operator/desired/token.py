"""The Secret with Ray's authentication token, made once and kept."""

import base64

from workergroups_api.kube import Manifest
from workergroups_api.names import TOKEN_KEY, token_secret_name
from workergroups_operator.observe import Observed


def secret(observed: Observed, fresh_token: str) -> Manifest:
    """With the token that exists, else with the fresh one."""
    name = token_secret_name(observed.key.name)
    existing = observed.children.get(("Secret", name), {}).get("data", {}).get(TOKEN_KEY)
    encoded = existing or base64.b64encode(fresh_token.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "data": {TOKEN_KEY: encoded},
    }
