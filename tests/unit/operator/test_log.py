"""What the operator's log looks like."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import logging
from workergroups_operator.__main__ import configure_log
configure_log()
logger = logging.getLogger("workergroups_operator.observe")
logger.debug("looked")
logger.warning("cannot read pool %s", "b1")
logging.getLogger("kopf.objects").info("handled")
"""


def logged(**variables):
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True).stderr


def test_it_is_text_by_default():
    (line,) = logged().splitlines()
    assert line.endswith("[WARNING ] cannot read pool b1")


def test_each_line_can_be_a_json_object():
    (line,) = logged(LOG_FORMAT="json").splitlines()
    assert json.loads(line).items() >= {"message": "cannot read pool b1", "severity": "warn"}.items()
    assert "timestamp" in json.loads(line)


@pytest.mark.parametrize(("level", "lines"), [("debug", 2), ("info", 1), ("warning", 1), ("error", 0)])
def test_the_level_says_from_what_on(level, lines):
    assert len(logged(LOG_LEVEL=level).splitlines()) == lines
