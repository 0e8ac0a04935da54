"""How the subprocesses of workers are named: by their title, or what they run."""

import pytest

from workergroups.processes import node_processes

GONE = "\N{REPLACEMENT CHARACTER}"
SPAWNED = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["VLLM::EngineCore"], "VLLM::EngineCore"),
        (["worker\n\x1b[31m of Müller\u202e"], f"worker {GONE}[31m of Müller{GONE}"),
        (["a" * 500 + "b" * 500], "a" * 47 + " [...] " + "b" * 46),
        (["/usr/bin/g++", "-O3", "main.cpp"], "g++"),
        (["python3", "-u", "/code/serve.py", "--port=1"], "serve.py"),
        (
            ["/usr/bin/python3.12", "-m", "torch._inductor.compile_worker", "--pickler=x"],
            "torch._inductor.compile_worker",
        ),
        (["python", "-c", SPAWNED, "--multiprocessing-fork"], "multiprocessing.spawn"),
        (["python3", "-c", "import time; time.sleep(9)"], "python3"),
        (["python3", "-"], "python3"),
        (["python3"], "python3"),
        ([""], ""),
    ],
)
def test_a_subprocess_has_the_name_of_what_it_runs(command, name):
    assert node_processes._program(command) == name
