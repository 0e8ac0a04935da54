"""Record commands in a terminal, as an animated SVG: ``python -m docs.recording FILE.svg [COMMAND...]``.

Without commands, it records `up`, `status` and `debug` on the cluster that `KUBECONFIG` names.
"""

import sys
from pathlib import Path

from .frames import frames
from .svg import drawing
from .terminal import record

SESSION = "docs/recording/session"
COMMANDS = (
    f"workergroups up --yes -f {SESSION}",
    "workergroups status recording",
    f"workergroups job submit recording --no-wait --working-dir {SESSION} -- python driver.py",
    "sleep 15",  # until the rank has reached its breakpoint
    "workergroups debug recording",
)


def main() -> None:
    """Record, and write the drawing. A command that fails ends the program, and nothing is written."""
    target, *commands = sys.argv[1:]
    Path(target).write_text(drawing(frames(record(commands or COMMANDS))))


if __name__ == "__main__":
    main()
