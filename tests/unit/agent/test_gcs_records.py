"""What observer and executor write for each other into the GCS arrives, and nothing else there stops either."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.agent.ray_world import KEY, PREPARED, Store, group, plan, pool
from workergroups_agent import account, orders
from workergroups_agent.account import SILENCE, SILENT_SECONDS, START_SECONDS, AccountReader, AccountWriter
from workergroups_agent.launch_state import LAUNCHING, Heard
from workergroups_agent.orders import OrderReader, OrderSender
from workergroups_api.conditions import Explanation

PLAN = plan(pool(), group())
FAILED = Explanation("LaunchFailed", "ImportError: x")


class Clock:
    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time


@pytest.fixture
def store():
    return Store()


def test_orders_arrive_and_are_read_once(store):
    sender, reader = OrderSender(store), OrderReader(store)
    assert (reader.plan(), reader.has_news()) == (None, False)
    sender.send_launch(PREPARED)
    stamp = sender.send_plan(PLAN)
    assert reader.has_news()
    assert (reader.plan(), reader.stamp, reader.has_news()) == (PLAN, stamp, False)
    assert reader.launches(PLAN.groups) == {"uid-g": PREPARED}
    store.delete(orders.NAMESPACE, "launch/uid-g")
    assert reader.launches(PLAN.groups) == {"uid-g": PREPARED}
    assert reader.launches([]) == {}


def test_a_launch_that_comes_with_a_later_order_is_read_then(store):
    sender, reader = OrderSender(store), OrderReader(store)
    sender.send_plan(PLAN)
    reader.plan()
    assert reader.launches(PLAN.groups) == {}
    sender.send_launch(PREPARED)
    assert reader.launches(PLAN.groups) == {}
    sender.send_plan(PLAN)
    reader.plan()
    assert reader.launches(PLAN.groups) == {"uid-g": PREPARED}


def test_another_revision_is_read_again(store):
    sender, reader = OrderSender(store), OrderReader(store)
    sender.send_launch(PREPARED)
    sender.send_plan(PLAN)
    reader.plan()
    reader.launches(PLAN.groups)
    sender.send_launch(PREPARED.model_copy(update={"revision": "r2"}))
    (found,) = reader.launches([group(revision="r2")]).values()
    assert found.revision == "r2"


def test_launches_that_nobody_wants_are_removed_those_of_an_earlier_observer_too(store):
    OrderSender(store).send_launch(PREPARED)
    sender = OrderSender(store)
    sender.remove_launches_but({"uid-g"})
    assert store.keys(orders.NAMESPACE) == ["launch/uid-g"]
    sender.remove_launches_but(set())
    assert store.keys(orders.NAMESPACE) == []


def test_an_account_arrives_and_a_sign_of_life_with_it(store):
    reader, writer = AccountReader(store), AccountWriter(store)
    assert reader.look() == Heard()
    writer.tell({KEY: FAILED}, "stamp")
    assert (reader.look(), reader.orders) == (Heard({KEY: FAILED}), "stamp")
    writer.tell({}, "stamp")
    assert reader.look() == Heard()


def test_an_executor_that_gives_no_sign_of_life_is_named(store):
    clock = Clock()
    reader, writer = AccountReader(store, clock), AccountWriter(store)
    clock.time += START_SECONDS + 0.1
    assert reader.look().silence == SILENCE
    writer.tell({KEY: FAILED}, "stamp")
    assert reader.look().silence is None
    clock.time += SILENT_SECONDS + 0.1
    assert reader.look() == Heard({KEY: FAILED}, SILENCE)
    writer.tell({KEY: FAILED}, "stamp")
    assert reader.look().silence is None


def test_of_an_account_only_what_is_about_planned_groups_counts(store):
    """Users can write to the GCS; an unknown launch would have the observer look for ranks all the time."""
    AccountWriter(store).tell({("uid-of-nobody", 1): LAUNCHING, ("uid-g", 7): LAUNCHING, KEY: FAILED}, None)
    heard = AccountReader(store).look().about(PLAN)
    assert heard == Heard({KEY: FAILED})
    assert not heard.is_launching


def test_the_next_executors_account_replaces_the_one_before(store):
    reader = AccountReader(store)
    AccountWriter(store).tell({KEY: FAILED}, None)
    reader.look()
    AccountWriter(store).tell({}, None)
    assert reader.look() == Heard()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
ODD = st.binary() | JSON.map(lambda value: json.dumps(value).encode()) | st.just(b"[" * 100_000) | st.just(b"9" * 5000)


@settings(deadline=None)
@given(sign=ODD, said=ODD, ordered=ODD, launch=ODD)
def test_nothing_that_stands_there_stops_them(sign, said, ordered, launch):
    store = Store()
    heard, reader = AccountReader(store), OrderReader(store)
    store.put(account.NAMESPACE, "heartbeat", sign)
    store.put(account.NAMESPACE, "account", said)
    store.put(orders.NAMESPACE, "stamp", sign)
    store.put(orders.NAMESPACE, "plan", ordered)
    store.put(orders.NAMESPACE, "launch/uid-g", launch)
    heard.look()
    reader.plan()
    reader.launches(PLAN.groups)
    AccountWriter(store).tell({KEY: FAILED}, "stamp")
    OrderSender(store).send_plan(PLAN)
    assert heard.look() == Heard({KEY: FAILED})
    assert reader.plan() == PLAN
