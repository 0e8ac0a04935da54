"""Kubelet's probe of the agent's containers tells a process that works from one that hangs."""

import os
import subprocess

import pytest

from workergroups_agent.liveness_file import ALIVE_SECONDS, LivenessFile
from workergroups_operator.templates.probes import agent_probes

SHELLS = [shell for shell in ("/bin/sh", "/bin/bash") if os.path.exists(shell)]


def passes(shell, path):
    _, *arguments = agent_probes()["livenessProbe"]["exec"]["command"]
    environment = {"WORKERGROUPS_ALIVE": str(path), "PATH": "/nowhere"}
    return subprocess.run([shell, *arguments], env=environment, timeout=60).returncode == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_the_probe_follows_the_sign_of_life(tmp_path, shell):
    path = tmp_path / "it's alive"
    assert not passes(shell, path), "it has not begun"
    LivenessFile(path).prolong()
    assert passes(shell, path)
    passed = path.stat().st_mtime - ALIVE_SECONDS - 1
    os.utime(path, (passed, passed))
    assert not passes(shell, path), "it hangs"
    LivenessFile(path).prolong()
    assert passes(shell, path)
