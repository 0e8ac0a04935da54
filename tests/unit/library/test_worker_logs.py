"""The last lines of worker processes, from the files that Ray writes on their node."""

import pytest

from workergroups.ray_private import worker_logs

WORKER = "ab" * 28


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.setattr(worker_logs, "SESSIONS", tmp_path)
    logs = tmp_path / "session_1" / "logs"
    logs.mkdir(parents=True)
    (tmp_path / "session_latest").symlink_to(tmp_path / "session_1")  # as Ray has it
    return logs


def test_the_output_comes_first_without_rays_marks(logs):
    (logs / f"worker-{WORKER}-01000000-7.err").write_text(":job_id:01000000\nTraceback\n")
    (logs / f"worker-{WORKER}-01000000-7.out").write_text(":job_id:01000000\n:actor_name:A\nstep 1\n")
    (logs / f"worker-{'cd' * 28}-01000000-8.out").write_text("another's\n")
    assert worker_logs.last_lines(WORKER) == b"step 1\nTraceback\n"


def test_of_a_long_log_whole_lines_of_the_end_are_read(logs):
    lines = [f"line {number}" for number in range(20_000)]
    (logs / f"worker-{WORKER}-01000000-7.out").write_text("\n".join(lines))
    text = worker_logs.last_lines(WORKER).decode()
    assert len(text) < worker_logs.MAX_BYTES
    assert lines[-1] == text.splitlines()[-1]
    assert text.splitlines()[0] in lines


def test_a_worker_without_logs_has_none_and_no_other_file_is_read(logs):
    assert worker_logs.last_lines(WORKER) is None
    with pytest.raises(ValueError, match="no worker's id"):
        worker_logs.last_lines("../../etc/passwd")
