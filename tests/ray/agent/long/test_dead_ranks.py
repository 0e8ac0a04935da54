"""What a rank printed before it died is kept, however it died."""

import re
import time

import pytest

from tests.ray.agent.planned import Group, launch

# Rank 1 ends right after its last words; and it is no tidy one.
CODE = """
import os, signal, sys, threading
import workergroups

class Accumulator(workergroups.Worker):
    def __init__(self, how):
        super().__init__()
        print("rank", self.rank, "begins")
        if self.rank != 1:
            return
        if how == "constructor":
            self.speak()
            raise ValueError("told to fail")
        threading.Timer(1, self.end, [how]).start()

    def speak(self):
        for number in range(5000):
            print("step", number)
        sys.stdout.buffer.write(b"odd: \\xff \\0 \\x1b[31mred\\r100%\\n")
        sys.stdout.flush()
        print("my last words", file=sys.stderr, flush=True)

    def end(self, how):
        self.speak()
        if how == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def until_kept(executor, group, words, seconds=20):
    """The ranks of which lines are kept, and the text of the last."""
    deadline = time.monotonic() + seconds
    lines = executor.exchange.previous_logs
    while True:
        dead = lines.of_group(group.uid)
        text = lines.read(dead[-1].key)[1].decode() if dead else ""
        if words in text:
            return dead, text
        assert time.monotonic() < deadline, f"still {dead}: {text[-1000:]}\n{executor.log.read_text()}"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("how", "reason"), [("exit", "ProcessDied"), ("kill", "ProcessDied"), ("constructor", "ConstructorFailed")]
)
def test_the_last_lines_of_a_rank_that_dies_are_kept(executor, how, reason):
    trainer = Group(code=CODE, launch=launch(init_kwargs={"how": how}))
    failed = executor.until(lambda reports: reports.groups["trainer"].report.failures, trainer)
    if how == "exit":
        (failure,) = failed.groups["trainer"].report.failures
        assert re.fullmatch(r"its code called os\._exit\(3\) at .*/accumulator\.py:\d+ in end", failure.message)
    until_kept(executor, trainer, "my last words")  # standard error and output are files of their own
    (dead,), text = until_kept(executor, trainer, "100%")
    assert (dead.rank, dead.incarnation, dead.reason) == (1, 1, reason)
    reports = executor.until(lambda reports: reports.groups["trainer"].report.last_words, trainer)
    (said,) = reports.groups["trainer"].report.last_words
    assert (said.incarnation, said.rank) == (1, 1)
    # Ray prints the traceback of a constructor's exception, before or after what the rank has printed.
    last = ["100%", "my last words", *(["told to fail"] if how == "constructor" else [])]
    assert any(words in said.text for words in last)
    # A line that is just being written may come in two, and standard error at any place: but nothing is lost.
    printed = text.replace("my last words\n", "").replace("\n", "")
    characters = iter(printed)
    steps = "".join(f"step {number}" for number in range(4000, 5000))
    assert all(character in characters for character in steps)
    assert "odd: \ufffd \0 \x1b[31mred\r100%" in printed
    assert "rank 0" not in text
    assert "last words" not in executor.log.read_text()
