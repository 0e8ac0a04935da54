"""Which cluster the demo uses: the one that CLUSTER names, else an existing one, else kind if possible, else local."""

import os
import shutil
import subprocess
from dataclasses import dataclass

# A tag that is never removed: if it can be pulled, so can the images that kind and ours are based on.
_KIND_IMAGE = "kindest/node:v1.35.0"
_COMMANDS = ("docker", "kind", "kubectl", "helm")
_SECONDS = 5


@dataclass(frozen=True)
class Facts:
    """The facts that the choice depends on."""

    named: str = ""  # in CLUSTER
    there: tuple[str, ...] = ()  # clusters of an earlier demo
    missing: tuple[str, ...] = ()  # commands that kind needs
    engine_answers: bool = False
    image: str = _KIND_IMAGE
    image_is_had: bool = False


@dataclass(frozen=True)
class Choice:
    """A cluster, and why it was chosen."""

    name: str
    why: str


def choose(facts: Facts) -> Choice:
    """Return the choice, which depends on these facts alone."""
    if facts.named:
        return Choice(facts.named, "CLUSTER names it")
    if facts.there:
        return Choice(facts.there[0], "it is there already")
    if reason := _why_not_kind(facts):
        return Choice("local", f"not kind, since {reason}")
    return Choice("kind", f"Docker answers, and {facts.image} can be had")


def look(named: str, there: tuple[str, ...]) -> Facts:
    """Find out the facts, within some seconds; stop as soon as the choice is clear."""
    missing = tuple(command for command in _COMMANDS if shutil.which(command) is None)
    image = os.environ.get("KIND_NODE_IMAGE") or _KIND_IMAGE
    engine_answers = not (named or there or missing) and _succeeds("docker", "version")
    image_is_had = engine_answers and _is_had(image)
    return Facts(named, there, missing, engine_answers, image, image_is_had)


def _why_not_kind(facts: Facts) -> str:
    if facts.missing:
        return f"there is no {' and no '.join(facts.missing)} on PATH"
    if not facts.engine_answers:
        return "no Docker engine answers"
    if not facts.image_is_had:
        return f"{facts.image} is not there and cannot be pulled"
    return ""


def _is_had(image: str) -> bool:
    return _succeeds("docker", "image", "inspect", image) or _succeeds("docker", "manifest", "inspect", image)


def _succeeds(*command: str) -> bool:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
