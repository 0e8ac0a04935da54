"""verl's trainer saves when a node is about to go, and lets it go when that is done."""

import sys
import types

import pytest

from workergroups.for_verl import notices


class Reader:
    """Reads the notices of the trainer's nodes."""

    notice = None
    answers = 0
    is_waited_for = False

    def __init__(self):
        self.told = False

    def look(self):
        self.is_waited_for = True
        self.told = self.notice is not None
        return self.notice

    def stop(self):
        self.is_waited_for = False

    def answer(self):
        if self.told:
            self.answers += 1
            self.notice = None


def older(module, save_freq=1000):
    class Trainer:
        saved = 0

        def _save_checkpoint(self):
            self.saved += 1

        def step(self):
            is_close = module.should_save_ckpt_esi(max_steps_duration=1.0, redundant_time=0)
            if is_close and save_freq > 0:
                self._save_checkpoint()

    module.should_save_ckpt_esi = lambda max_steps_duration, redundant_time: False
    module.Trainer = Trainer
    return Trainer()


def of_v1(module, save_freq=1000):
    class Base:
        config = types.SimpleNamespace(trainer=types.SimpleNamespace(save_freq=save_freq))
        saved = ended = 0

        def _save_checkpoint(self):
            assert not self.ended
            self.saved += 1

        def on_step_end(self):
            self.ended += 1

    class Trainer(Base):
        def on_step_end(self):
            super().on_step_end()

        def step(self):
            if save_freq == 1:
                self._save_checkpoint()
            self.on_step_end()
            assert self.ended == 1

    module.Base, module.Trainer = Base, Trainer
    return Trainer()


@pytest.fixture
def reader(monkeypatch):
    found = Reader()
    monkeypatch.setattr(notices, "_reader", lambda: found)
    return found


@pytest.fixture
def change(monkeypatch, reader):
    """Return a trainer of a module as verl's, once the module has been changed."""

    def changed(make, **options):
        module = types.ModuleType("verl.trainer.of_a_test")
        trainer = make(module, **options)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        notices.save_on_notice()
        notices.save_on_notice()  # by the next pool of the same program
        return trainer

    return changed


@pytest.mark.parametrize("make", [older, of_v1])
def test_without_a_notice_it_saves_as_often_as_it_would(change, reader, make):
    trainer = change(make)
    trainer.step()
    assert (trainer.saved, reader.answers) == (0, 0)


@pytest.mark.parametrize("make", [older, of_v1])
def test_with_a_notice_it_saves_after_its_step_and_the_node_may_go(change, reader, make):
    trainer = change(make)
    reader.notice = "soon"
    trainer.step()
    assert (trainer.saved, reader.answers) == (1, 1)


def test_a_step_that_is_saved_anyway_is_saved_once(change, reader):
    trainer = change(of_v1, save_freq=1)
    reader.notice = "soon"
    trainer.step()
    assert (trainer.saved, reader.answers) == (1, 1)


@pytest.mark.parametrize("make", [older, of_v1])
def test_nothing_waits_for_a_trainer_that_does_not_save(change, reader, make):
    trainer = change(make, save_freq=-1)
    reader.notice = "soon"
    for _ in range(3):
        trainer.ended = 0
        trainer.step()
    assert (trainer.saved, reader.answers, reader.is_waited_for) == (0, 0, False)
