"""verl's trainer saves when a node is about to go, and lets it go when that is done."""

import sys
import types

import pytest

from workergroups.for_verl import notices


@pytest.fixture
def trainer(monkeypatch):
    """A module as verl's, with a trainer that has saved nothing; and what it reads the notices of its nodes with."""
    module = types.ModuleType("verl.trainer.of_a_test")

    class Trainer:
        def __init__(self):
            self.saved = 0

        def _save_checkpoint(self):
            assert reader.answers == 0
            self.saved += 1

        def step(self):
            if module.should_save_ckpt_esi(max_steps_duration=1.0, redundant_time=0):
                self._save_checkpoint()

    class Reader:
        notice = None
        answers = 0

        def look(self):
            return self.notice

        def answer(self):
            self.answers += 1

    reader = Reader()
    module.Trainer, module.should_save_ckpt_esi = Trainer, lambda max_steps_duration, redundant_time: False
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(notices, "_reader", lambda: reader)
    notices.save_on_notice()
    notices.save_on_notice()  # by the next pool of the same program
    return Trainer(), reader


def test_without_a_notice_it_saves_as_often_as_it_would(trainer):
    trainer, reader = trainer
    trainer.step()
    assert (trainer.saved, reader.answers) == (0, 0)


def test_with_a_notice_it_saves_after_its_step_and_the_node_may_go(trainer):
    trainer, reader = trainer
    reader.notice = "soon"
    trainer.step()
    assert (trainer.saved, reader.answers) == (1, 1)
