"""When the kernel has ended processes of a container for lack of memory, and which deaths that explains."""

import pytest

from workergroups.node import memory_kills
from workergroups.node.memory_kills import explain, kills, read, to_record, watch

V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"
V2 = "low 0\nhigh 3\nmax 12\noom 4\noom_kill {}\noom_group_kill 0\n"


def write(groups, number, text=V2, name="memory.events"):
    path = groups / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.format(number))


def test_both_versions_of_control_groups_count_kills(tmp_path):
    assert kills(tmp_path) == 0
    write(tmp_path, 2, V1, "memory/memory.oom_control")
    assert kills(tmp_path) == 2
    write(tmp_path, 3)
    assert kills(tmp_path) == 3
    (tmp_path / "memory.events").write_text("an older kernel 1\n")
    assert kills(tmp_path) == 0


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([7, 7, 7], []),
        ([8, 8], [[100.0]]),
        ([8, 8, 10], [[100.0], [100.0, 102.0]]),
        # The container was started again, and with it the counter.
        ([0, 1], [[101.0]]),
        (list(range(8, 18)), [[100.0 + at for at in range(max(0, last - 7), last + 1)] for last in range(10)]),
    ],
)
def test_each_growth_of_the_counter_is_told_with_the_latest_times(tmp_path, monkeypatch, numbers, told):
    write(tmp_path, 7)
    looks = iter(enumerate(numbers))
    said, clock = [], [0.0]

    def wait(_):
        try:
            number, value = next(looks)
        except StopIteration:
            raise OSError("the control group is gone") from None
        clock[0] = 100.0 + number
        write(tmp_path, value)

    monkeypatch.setattr(memory_kills, "_wait", wait)
    monkeypatch.setattr(memory_kills.time, "time", lambda: clock[0])
    watch(lambda times: said.append(list(times)), tmp_path)
    assert said == told


def test_without_a_counter_there_is_nothing_to_watch(tmp_path):
    watch(pytest.fail, tmp_path)


@pytest.mark.parametrize(
    ("ended", "is_explained"),
    [(100.0, True), (98.5, True), (97.5, False), (109.0, True), (111.0, False), (199.0, True), (150.0, False)],
)
def test_a_process_that_ended_at_about_the_time_of_a_kill(ended, is_explained):
    assert explain((100.0, 200.0), ended) is is_explained
    assert explain((), ended) is False


@pytest.mark.parametrize(
    "record",
    [None, b"", b"x", b"1", b'{"a": 1}', b'["1"]', b"[true]", b"[" * 900, b"[" + b"1, " * 900 + b"1]", b"\xff"],
)
def test_what_is_no_record_of_ours_has_no_times(record):
    assert read(record) == ()


def test_a_record_has_the_times():
    assert read(to_record([1795542938.123456, 1795542939.5])) == (1795542938.123456, 1795542939.5)
    assert read(to_record([1e9 + 1 / 3] * 8)) != ()
