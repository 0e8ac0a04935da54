"""Check the image of a Ray pod before Ray starts in it, in an init container of that pod.

The container runs `python3 check_image.py` next to the library, which another init container has copied there. The
operator reads the container's termination message: what was found, or what the image lacks. Any Python 3 must be able
to run this file.
"""

import compileall
import os
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

MINIMUM_RAY = (2, 52)
MINIMUM_PYTHON = (3, 10)
MINIMUM_PYDANTIC = (2, 5)
TERMINATION_LOG = Path("/dev/termination-log")
LIBRARY = Path(__file__).resolve().parent.parent

# Python runs only the first sitecustomize that it finds, so ours must run the image's own.
_SITE_CUSTOMIZE = '''\
"""Restores the image's PYTHONPATH, and runs the sitecustomize that this one hides."""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

sys.path[1:1] = {paths!r}
_hidden = PathFinder.find_spec("sitecustomize", [path for path in sys.path if path != {library!r}])
if _hidden is not None and _hidden.loader is not None:
    _hidden.loader.exec_module(module_from_spec(_hidden))
'''

# The executor listens on this port as soon as the head's container runs.
HEAD_RUNS_PORT = 6378
# KubeRay's init container on a worker runs `ray health-check` until the head's GCS answers. Each check imports Ray with
# a fifth of a CPU, which takes 5 s, and the container pauses for 5 s after a failure. To try to connect is cheaper.
# The wait ends as soon as the head's container runs: the worker needs another two seconds to start and to import Ray.
# If nothing listens for a minute, KubeRay's own loop runs and reports why.
# In Ray's container, this replaces `ray start` by ours.
_BASH_ENV = """\
unset BASH_ENV
{restore}
if [[ $BASH_EXECUTION_STRING =~ 'ray health-check --address '([^ ]+):([0-9]+) ]]; then
  echo "waiting until the head runs, or its GCS listens at ${{BASH_REMATCH[1]}}:${{BASH_REMATCH[2]}}"
  while (( SECONDS < 60 )); do
    for port in {head_runs} "${{BASH_REMATCH[2]}}"; do
      if timeout 2 bash -c "exec 3<> '/dev/tcp/${{BASH_REMATCH[1]}}/$port'" 2> /dev/null; then
        echo "the head listens at port $port after $SECONDS s"
        exit 0
      fi
    done
    sleep 0.2
  done
elif [[ $BASH_EXECUTION_STRING == *'ray start '* ]]; then
  ray() {{
    if [[ $1 == start ]]; then {python} -m workergroups_agent.start_again "$@"; else command ray "$@"; fi
  }}
fi
"""


def main() -> None:
    """Exit with 1 if this image cannot run Ray."""
    lacking = what_is_lacking()
    TERMINATION_LOG.write_text(lacking or found())
    if lacking:
        sys.exit(lacking)
    keep_python_path(os.environ.get("PYTHONPATH", ""))
    keep_bash_env(os.environ.get("BASH_ENV", ""))
    # debugpy and the like are seldom used, and compiling them would take time.
    compileall.compile_dir(str(LIBRARY), quiet=2, workers=1, rx=re.compile("/third_party/"))


def what_is_lacking() -> str:
    """Return why no worker group can run in this image, and the way out; empty if one can."""
    if sys.version_info[:2] < MINIMUM_PYTHON:
        return f"the image has Python {_python()}, and needs {_dotted(MINIMUM_PYTHON)} or later"
    ray = version_of("ray")
    if ray is None:
        return f"the image has no Ray that `{sys.executable}` could import: install ray[default]"
    if _numbers(ray) < MINIMUM_RAY:
        return (
            f"the image has Ray {ray}, and needs {_dotted(MINIMUM_RAY)} or later, the first with token authentication: "
            "use an image with a newer Ray"
        )
    if find_spec("aiohttp_cors") is None:
        return "the image has Ray without the dashboard, which KubeRay's probes ask: install ray[default]"
    pydantic = version_of("pydantic")
    if pydantic is None or _numbers(pydantic) < MINIMUM_PYDANTIC:
        has = f"pydantic {pydantic}" if pydantic else "no pydantic"
        return f"the image has {has}, and needs {_dotted(MINIMUM_PYDANTIC)} or later, which ray[default] brings"
    return ""


def found() -> str:
    """Return the versions, which must be the same on all nodes of a Ray cluster."""
    return f"ray {version_of('ray')} python {_python()}"


def version_of(distribution: str) -> "str | None":
    """Return the version of a distribution, None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # Python 3.8

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def keep_python_path(theirs: str) -> None:
    """Let each Python in the pod's containers add the image's PYTHONPATH to ours."""
    paths = [path for path in theirs.split(os.pathsep) if path and path != str(LIBRARY)]
    if paths:
        text = _SITE_CUSTOMIZE.format(paths=paths, library=str(LIBRARY))
        (LIBRARY / "sitecustomize.py").write_text(text)


def keep_bash_env(theirs: str) -> None:
    """Write the file that BASH_ENV names in Ray's containers: it shortens waits, and restores the image's BASH_ENV."""
    quoted = shlex.quote(theirs)
    restore = f"export BASH_ENV={quoted}\n[ -r {quoted} ] && . {quoted}" if theirs else ""
    text = _BASH_ENV.format(restore=restore, python=shlex.quote(sys.executable), head_runs=HEAD_RUNS_PORT)
    (LIBRARY / "bash_env.sh").write_text(text)


def _python() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])


def _dotted(version: "tuple[int, ...]") -> str:
    return ".".join(str(part) for part in version)


def _numbers(version: str) -> "tuple[int, ...]":
    return tuple(int(part) for part in re.findall("[0-9]+", version)[:2])


if __name__ == "__main__":
    main()
