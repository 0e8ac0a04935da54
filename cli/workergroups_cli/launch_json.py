"""`.vscode/launch.json`: what VS Code needs to attach to a rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workergroups_client.api_server.tunnel import LOOPBACK
from workergroups_client.errors import ClientError

_FILE = Path(".vscode/launch.json")
_NEW: dict[str, Any] = {"version": "0.2.0", "configurations": []}


def configuration(name: str, port: int, directory: str | None) -> dict[str, Any]:
    """Return a configuration that attaches to a port of this machine, with the editor's folder as the rank's code.

    The rank names the directory of its code. A text that is no plain path is left out: the editor would replace
    `${env:NAME}` in it, and run `${command:NAME}`.
    """
    is_path = directory is not None and directory.startswith("/") and directory.isprintable() and "${" not in directory
    mappings = [{"localRoot": "${workspaceFolder}", "remoteRoot": directory}] if is_path else []
    return {
        "name": name,
        "type": "debugpy",
        "request": "attach",
        "connect": {"host": LOOPBACK, "port": port},
        "pathMappings": mappings,
        "justMyCode": False,
    }


def write(wanted: dict[str, Any]) -> Path:
    """Add the configuration to the file in the working directory, and replace an earlier one of the same name.

    Raises:
        ClientError: The file exists and cannot be read, or is not JSON, or has comments, so it is not changed; or it
            cannot be written.
    """
    try:
        found = json.loads(_FILE.read_text()) if _FILE.exists() else _NEW
        others = [each for each in found["configurations"] if each["name"] != wanted["name"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ClientError(
            f"{_FILE} was not changed, since it cannot be read as JSON ({error}); add this to its configurations: "
            f"{json.dumps(wanted)}"
        ) from error
    try:
        _FILE.parent.mkdir(exist_ok=True)
        _FILE.write_text(json.dumps({**found, "configurations": [wanted, *others]}, indent=2) + "\n")
    except OSError as error:
        raise ClientError(f"{_FILE} cannot be written: {error.strerror}") from error
    return _FILE
