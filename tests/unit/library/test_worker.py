"""`Worker` tells what its own constructor must do."""

import pytest

from workergroups import Worker


class Early(Worker):
    def __init__(self, attribute):
        self.found = getattr(self, attribute)
        super().__init__()


@pytest.mark.parametrize("attribute", ["rank", "world_size"])
def test_a_constructor_that_uses_its_rank_too_early_is_told_what_to_call_first(attribute):
    with pytest.raises(RuntimeError, match=r"Early.__init__ must call super\(\).__init__\(\) before it uses its rank"):
        Early(attribute)
