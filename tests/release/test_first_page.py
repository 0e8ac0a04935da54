"""The laptop part of README.md does what it says, with the wheel, where nothing else is installed."""

import re
import shlex

import pytest

from tests.unit.docs.pages import blocks, inline

# Of README.md, by the extra: "pip install '.[ray]'", which is for a clone of the repository.
COMMANDS = {
    extra[1]: sample.text
    for sample in inline("pip install ")
    if sample.page == "README.md" and (extra := re.search(r"'\.\[(\w+)\]'", sample.text))
}


@pytest.fixture
def install(released, clean_place):
    (wheel,) = released.glob("*.whl")

    def install(extra: str) -> None:
        *_, requirement = shlex.split(COMMANDS[extra])
        clean_place.install(requirement.replace(".", str(wheel), 1))

    return install


def test_the_first_program_prints_what_its_comment_says(install, clean_place):
    program = next(sample.text for sample in blocks("python") if sample.page == "README.md")
    (expected,) = re.findall(r"print\(.*\)  # (.*)", program)
    install("ray")
    (clean_place.directory / "first.py").write_text(program)
    assert clean_place.run("python", "first.py").splitlines() == [expected]


def test_the_command_line_needs_no_ray(install, clean_place, released):
    (wheel,) = released.glob("*.whl")
    install("cli")
    for name in ("workergroups", "kubectl-workergroups"):
        assert clean_place.run(name, "--version").strip() == wheel.name.split("-")[1]
        assert "Usage:" in clean_place.run(name, "job", "submit", "--help")
    assert clean_place.run("python", "-c", "from importlib.util import find_spec; print(find_spec('ray'))") == "None\n"
