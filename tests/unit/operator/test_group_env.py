"""The variables that a group takes from Secrets and ConfigMaps: resolved, named, stored, and what the status says."""

import asyncio
import base64
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.operator.make import (
    NOW,
    SESSION,
    api_error,
    child,
    decided,
    group,
    observed,
    of_kind,
    ready_pool,
    statuses,
    wanted,
)
from workergroups_api.conditions import Explanation, find
from workergroups_api.launch import MAX_ENV_BYTES
from workergroups_api.manifest import CONFIG_MAP, SECRET
from workergroups_common.path_segment import InvalidName
from workergroups_kube import RefusedObject
from workergroups_operator.group_sources import MAX_TOTAL, Sources
from workergroups_operator.policy.group_env import (
    MAX_BYTES,
    Content,
    entry_of,
    env_digest,
    resolve,
    sources_of,
    values_in,
    with_room_in_secret,
)
from workergroups_operator.policy.token import encoded

TOKEN = encoded("token")
SECRET_A, MAP_A = (SECRET, "a"), (CONFIG_MAP, "a")


def secret_key(name, key="k", source="a", **more):
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": source, "key": key} | more}}


def map_key(name, key="k", source="a", **more):
    return {"name": name, "valueFrom": {"configMapKeyRef": {"name": source, "key": key} | more}}


def from_secret(name="a", prefix=None, **more):
    return {"secretRef": {"name": name} | more} | ({"prefix": prefix} if prefix else {})


def from_map(name="a", **more):
    return {"configMapRef": {"name": name} | more}


def resolved(contents, env=(), env_from=()):
    spec = group(env=list(env), envFrom=list(env_from)).spec
    return resolve(spec.env, spec.env_from, contents)


PLAIN = {"name": "A", "value": "plain"}


@pytest.mark.parametrize(
    ("contents", "env", "env_from", "expected"),
    [
        ({}, [PLAIN], [], {}),
        ({SECRET_A: Content({"k": "v"})}, [secret_key("A")], [], {"A": "v"}),
        ({MAP_A: Content({"k": "v"})}, [map_key("A")], [], {"A": "v"}),
        ({SECRET_A: Content({"k": "v", "l": "w"})}, [], [from_secret()], {"k": "v", "l": "w"}),
        ({SECRET_A: Content({"k": "v"})}, [], [from_secret(prefix="P_")], {"P_k": "v"}),
        # Later objects replace earlier ones, and single variables all of them.
        ({SECRET_A: Content({"k": "s"}), MAP_A: Content({"k": "m"})}, [], [from_secret(), from_map()], {"k": "m"}),
        ({SECRET_A: Content({"k": "s"}), MAP_A: Content({"k": "m"})}, [], [from_map(), from_secret()], {"k": "s"}),
        ({SECRET_A: Content({"A": "s"}), MAP_A: Content({"k": "m"})}, [map_key("A")], [from_secret()], {"A": "m"}),
        ({SECRET_A: Content({"A": "s", "B": "t"})}, [PLAIN], [from_secret()], {"B": "t"}),
        ({SECRET_A: Content({"A": "s"}), MAP_A: None}, [map_key("A", optional=True)], [from_secret()], {"A": "s"}),
        # What may be missing is left out.
        ({SECRET_A: None}, [secret_key("A", optional=True)], [from_secret(optional=True)], {}),
        ({SECRET_A: Content({})}, [secret_key("A", optional=True)], [], {}),
        # As in a container, keys that cannot be names are skipped.
        ({MAP_A: Content({"1k": "v", "a.b-c": "w", "k": ""})}, [], [from_map()], {"a.b-c": "w", "k": ""}),
        # No value is expanded.
        ({SECRET_A: Content({"k": "$(A) ${A} \U0001f33f"})}, [secret_key("B")], [], {"B": "$(A) ${A} \U0001f33f"}),
    ],
)
def test_variables_are_resolved_as_for_a_container(contents, env, env_from, expected):
    assert resolved(contents, env, env_from) == expected


HIDDEN = "do not show"


@pytest.mark.parametrize(
    ("contents", "env", "env_from", "words"),
    [
        ({SECRET_A: None}, [PLAIN, secret_key("B")], [], "spec.env[1] (B): there is no Secret a: create it, or set"),
        ({MAP_A: None}, [], [from_map()], "spec.envFrom[0]: there is no ConfigMap a: create it, or set optional: true"),
        ({SECRET_A: Content({"l": HIDDEN})}, [secret_key("A")], [], "spec.env[0] (A): Secret a has no key k: add it"),
        ({SECRET_A: Content({"k": None})}, [secret_key("A")], [], "key k of Secret a is not valid text"),
        ({SECRET_A: Content({"k": None})}, [], [from_secret()], "spec.envFrom[0]: key k of Secret a is not valid text"),
        ({MAP_A: Content({"k": f"{HIDDEN}\0"})}, [map_key("A")], [], "key k of ConfigMap a is not valid text"),
        ({MAP_A: Content({"k": f"{HIDDEN}\ud800"})}, [map_key("A")], [], "key k of ConfigMap a is not valid text"),
        ({SECRET_A: Content(trouble="cannot be read: 500")}, [secret_key("A")], [], "Secret a cannot be read: 500"),
        # Neither is optional about an object that exists and cannot be used.
        ({SECRET_A: Content(trouble="is odd")}, [], [from_secret(optional=True)], "spec.envFrom[0]: Secret a is odd"),
        ({MAP_A: Content({"RANK": "1"})}, [], [from_map()], "ConfigMap a has the key RANK, and WorkerGroups sets RANK"),
        ({MAP_A: Content({"ANK": "1"})}, [], [from_map() | {"prefix": "R"}], "WorkerGroups sets RANK for each rank"),
        ({MAP_A: Content({"PYTHONHOME": "/"})}, [], [from_map()], "key PYTHONHOME, and no rank starts with PYTHONHOME"),
        ({MAP_A: Content({"k": HIDDEN * 10_000})}, [map_key("A")], [], f"and may have {MAX_ENV_BYTES}"),
        (
            {MAP_A: Content({"k": "x" * 90_000})},
            [map_key("A"), {"name": "B", "value": "y" * 10_000}],
            [],
            "spec.env and spec.envFrom have 100",
        ),
    ],
)
def test_what_cannot_be_resolved_names_field_object_and_key_and_no_value(contents, env, env_from, words):
    why = resolved(contents, env, env_from)
    assert isinstance(why, Explanation)
    assert why.reason == "WaitingForEnvironment"
    assert words in why.message
    assert HIDDEN not in why.message


def test_all_keys_of_an_object_are_read_only_if_all_are_needed():
    env = [secret_key("A", "x"), secret_key("B", "y"), map_key("C", "z"), PLAIN]
    spec = group(env=env, envFrom=[from_map()]).spec
    assert sources_of(spec.env, spec.env_from) == {SECRET_A: {"x", "y"}, MAP_A: None}


class TestDigest:
    def test_it_names_the_values_of_one_group_for_holders_of_the_token(self):
        digest = env_digest("uid", {"A": "1", "B": "2"}, TOKEN)
        assert digest == env_digest("uid", {"B": "2", "A": "1"}, TOKEN)
        both = {"A": "1", "B": "2"}
        others = [("uid", {"A": "1"}, TOKEN), ("other", both, TOKEN), ("uid", both, "t")]
        assert digest not in [env_digest(*other) for other in others]

    def test_an_entry_holds_them_and_nobody_else_can_write_one(self):
        values = {"A": "1", "grün": "\U0001f33f"}
        digest = env_digest("uid", values, TOKEN)
        entry = entry_of(digest, values)
        assert values_in(entry, "uid", digest, TOKEN) == values
        forged = entry_of(digest, values | {"A": "2"})
        for other in (forged, None, "", "no base64", base64.b64encode(b"[]").decode(), entry_of("other", values)):
            assert values_in(other, "uid", digest, TOKEN) is None
        assert values_in(entry, "uid", "other", TOKEN) is None


class TestRoom:
    def test_a_group_that_does_not_fit_says_so_and_the_others_go_on(self):
        large = {"A": "x" * (MAX_BYTES // 3)}
        found = with_room_in_secret({"a": large, "b": large, "c": large, "d": {"A": "x"}}, {})
        assert [name for name, each in found.items() if isinstance(each, Explanation)] == ["c"]
        assert (found["c"].reason, "clusterName" in found["c"].message) == ("ClusterTooLarge", True)

    def test_what_ranks_began_with_takes_room_too(self):
        live = {"a": entry_of("d", {"A": "x" * (MAX_BYTES - 1000)})}
        found = with_room_in_secret({"a": {}, "b": {"A": "x" * 2000}}, live)
        assert (found["a"], found["b"].reason) == ({}, "ClusterTooLarge")

    def test_what_fits_is_no_larger_than_a_secret(self):
        found = with_room_in_secret({f"g{number}": {"A": "x" * 5000} for number in range(1000)}, {})
        sizes = [len(base64.b64decode(entry_of("d" * 32, each))) for each in found.values() if isinstance(each, dict)]
        assert 100 < len(sizes) < 1000
        assert sum(sizes) < 2**20


# What the operator does with them.

ENV = [secret_key("KEY", "key", "wandb")]
VALUES = {"KEY": "from-wandb"}
DIGEST = env_digest("uid-trainer", VALUES, TOKEN)
OTHER = {"KEY": "another"}
OTHER_DIGEST = env_digest("uid-trainer", OTHER, TOKEN)
MISSING = Explanation("WaitingForEnvironment", "spec.env[0] (KEY): there is no Secret wandb: create it")
LAUNCHED = {"session": SESSION, "state": "Launched", "created": 4, "readyCount": 4, "ready": "0-3"}


def seen(environment=VALUES, stored=None, status=None, **more):
    children = child("Secret", "actors", data={"auth_token": TOKEN}) | child("ServiceAccount", "actors-agent")
    if stored is not None:
        children |= child("Secret", "actors-group-env", data=stored)
    environments = {} if environment is None else {"trainer": environment}
    trainer = group(env=ENV, status=status or {})
    return observed(pools=(ready_pool(),), groups=(trainer,), children=children, environments=environments, **more)


def running(digest=DIGEST, number=1, **more):
    """The status of a group whose ranks run with these variables."""
    first = decided(seen()).groups.incarnations["trainer"]
    known = {"incarnation": number, "revision": first.revision, "session": SESSION, "environment": digest}
    return known | {"ranks": LAUNCHED | {"incarnation": number} | more}


def planned(world):
    (plan,) = [each for each in wanted(world) if each["metadata"]["name"] == "actors-plan"]
    return json.loads(plan["data"]["plan.json"])["groups"][0]


def stored(world):
    found = [each for each in wanted(world) if each["metadata"]["name"] == "actors-group-env"]
    return found[0]["data"] if found else None


def up_to_date(world):
    found = find(statuses(world).updates[-1].after.conditions, "UpToDate")
    return found.status, found.reason


def test_plan_and_status_hold_the_digest_and_the_secret_the_values():
    world = seen()
    assert planned(world)["environment"] == DIGEST
    assert statuses(world).updates[-1].after.environment == DIGEST
    assert stored(world) == {"trainer": entry_of(DIGEST, VALUES)}
    others = [each for each in wanted(world) if each["metadata"]["name"] != "actors-group-env"]
    assert "from-wandb" not in json.dumps([others, [each.after.to_json() for each in statuses(world).updates]])
    assert "from-wandb" not in repr([world, decided(world)])


def test_without_variables_from_objects_there_is_no_secret_and_an_existing_one_becomes_empty():
    assert stored(seen(None)) is None
    assert stored(seen(None, stored={"trainer": "old"})) == {}


def test_before_there_is_a_token_nothing_is_planned():
    world = replace(seen(), children={})
    assert "environment" not in planned(world)
    assert stored(world) is None


def test_ranks_that_run_keep_what_they_began_with():
    world = seen(OTHER, stored={"trainer": entry_of(DIGEST, VALUES)}, status=running())
    assert (planned(world)["incarnation"], planned(world)["environment"]) == (1, DIGEST)
    assert stored(world) == {"trainer": entry_of(DIGEST, VALUES)}
    assert up_to_date(world) == ("False", "OldEnvironment")


def test_an_entry_that_somebody_has_changed_is_not_kept():
    world = seen(OTHER, stored={"trainer": entry_of(DIGEST, {"KEY": "forged"})}, status=running())
    assert stored(world) == {}


NO_RANKS = {"created": 0, "readyCount": 0}


@pytest.mark.parametrize("report", [NO_RANKS | {"state": state} for state in ("WaitingForPools", "LaunchFailed")])
def test_a_launch_that_has_not_begun_begins_with_the_present_values(report):
    world = seen(OTHER, stored={"trainer": entry_of(DIGEST, VALUES)}, status=running(**report))
    assert (planned(world)["incarnation"], planned(world)["environment"]) == (2, OTHER_DIGEST)
    assert stored(world) == {"trainer": entry_of(OTHER_DIGEST, OTHER)}


@pytest.mark.parametrize("report", [NO_RANKS | {"state": "Launching"}, {"created": 4, "readyCount": 3}])
def test_a_launch_that_has_begun_ends_with_the_values_with_which_it_began(report):
    world = seen(OTHER, stored={"trainer": entry_of(DIGEST, VALUES)}, status=running(**report))
    assert (planned(world)["incarnation"], planned(world)["environment"]) == (1, DIGEST)


def test_a_missing_object_is_the_groups_condition_and_nothing_is_launched():
    world = seen(MISSING)
    assert "environment" not in planned(world)
    conditions = statuses(world).updates[-1].after.conditions
    created = find(conditions, "RanksCreated")
    assert (created.status, created.reason) == ("False", "WaitingForEnvironment")
    assert "there is no Secret wandb: create it" in created.message
    assert find(conditions, "Ready").reason == "WaitingForEnvironment"


def test_an_object_that_is_gone_ends_no_ranks():
    world = seen(MISSING, stored={"trainer": entry_of(DIGEST, VALUES)}, status=running())
    assert (planned(world)["incarnation"], planned(world)["environment"]) == (1, DIGEST)
    assert stored(world) == {"trainer": entry_of(DIGEST, VALUES)}
    assert up_to_date(world) == ("Unknown", "EnvironmentMissing")


def test_the_operator_looks_again_soon_for_what_is_missing_and_rarely_otherwise():
    assert statuses(seen(), now=NOW).requeue_after == 60
    assert statuses(seen(MISSING), now=NOW).requeue_after == 2
    assert statuses(seen(None), now=NOW).requeue_after > 60
    old = {"conditions": [c.to_json() for c in statuses(seen(MISSING)).updates[-1].after.conditions]}
    later = NOW + timedelta(minutes=5)
    assert statuses(seen(MISSING, status=old), now=later).requeue_after == 60


def test_nodes_mount_the_secret_and_the_head_does_not():
    cluster = of_kind("RayCluster", wanted(seen()))
    volume = {"name": "workergroups-group-env", "secret": {"secretName": "actors-group-env", "optional": True}}
    mount = {"name": "workergroups-group-env", "mountPath": "/opt/workergroups-group-env", "readOnly": True}
    node = cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"]
    assert volume in node["volumes"]
    assert mount in node["containers"][0]["volumeMounts"]
    variable = {"name": "WORKERGROUPS_GROUP_ENV_DIRECTORY", "value": "/opt/workergroups-group-env"}
    assert variable in node["containers"][0]["env"]
    assert "group-env" not in json.dumps(cluster["spec"]["headGroupSpec"])


# Reading.


class Api:
    """Has these objects; an exception is raised."""

    def __init__(self, objects):
        self.objects = objects
        self.asked = []

    async def get(self, kind, namespace, name):
        self.asked.append((kind.kind, namespace, name))
        found = self.objects.get((kind, name))
        if isinstance(found, Exception):
            raise found
        return found


def env_of(sources, subject):
    return sources.env_of(subject.spec.env, subject.spec.env_from)


def read(objects, **spec):
    api = Api(objects)
    return asyncio.run(env_of(Sources(api, "team"), group(**spec))), api.asked


def text(value):
    return base64.b64encode(value.encode()).decode()


def test_each_object_is_read_once_in_the_groups_namespace():
    objects = {SECRET_A: {"data": {"k": text("v"), "l": text("w")}}, MAP_A: {"data": {"k": "m"}}}
    found, asked = read(objects, env=[secret_key("A"), secret_key("B", "l"), map_key("C")])
    assert found == {"A": "v", "B": "w", "C": "m"}
    assert sorted(asked) == [("ConfigMap", "team", "a"), ("Secret", "team", "a")]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "there is no Secret a"),
        ({}, "Secret a has no key k"),
        ({"data": {"k": base64.b64encode(b"\xff").decode()}}, "key k of Secret a is not valid text"),
        ({"data": {"k": "x" * 300_000}}, "Secret a has more than the 98304 bytes"),
        (RefusedObject("too deep", b""), "Secret a exceeds what the operator reads: too deep"),
        (InvalidName("odd"), "Secret a cannot exist"),
        # What the API server answers if it cannot decrypt a Secret.
        (api_error(500, "no key"), "Secret a cannot be read: no key"),
    ],
)
def test_an_odd_object_is_its_groups_trouble_only(found, words):
    why, _ = read({SECRET_A: found}, env=[secret_key("A")])
    assert words in why.message


def test_an_api_server_that_does_not_answer_ends_the_turn():
    with pytest.raises(TimeoutError):
        read({SECRET_A: TimeoutError()}, env=[secret_key("A")])


def test_no_group_holds_many_large_objects_at_once():
    objects = {(CONFIG_MAP, f"m{number}"): {"data": {"k": "x" * 60_000}} for number in range(20)}
    why, asked = read(objects, envFrom=[from_map(f"m{number}") for number in range(20)])
    assert "name fewer keys" in why.message
    assert len(asked) < 6


def test_what_many_groups_need_is_read_once_in_a_turn():
    objects = {(CONFIG_MAP, f"m{number}"): {"data": {"k": "v", "l": "w"}} for number in range(3)}
    every = [from_map(f"m{number}") for number in range(3)]

    async def turn():
        api = Api(objects)
        sources = Sources(api, "team")
        groups = [group(f"g{number}", envFrom=every) for number in range(40)]
        found = await asyncio.gather(*(env_of(sources, each) for each in groups))
        return found, api.asked

    found, asked = asyncio.run(turn())
    assert found == [{"k": "v", "l": "w"}] * 40
    assert len(asked) == 3


def test_an_object_that_is_not_answered_is_asked_for_once_in_a_turn():
    async def turn():
        api = Api({SECRET_A: TimeoutError()})
        sources = Sources(api, "team")
        groups = [group(f"g{number}", env=[secret_key("A")]) for number in range(40)]
        return await asyncio.gather(*(env_of(sources, each) for each in groups), return_exceptions=True), api.asked

    found, asked = asyncio.run(turn())
    assert {type(each) for each in found} == {TimeoutError}
    assert len(asked) == 1


def test_all_groups_of_a_cluster_hold_a_bounded_part_of_these_objects():
    objects = {(CONFIG_MAP, f"m{number}"): {"data": {"k": "x" * 90_000}} for number in range(100)}

    async def turn():
        sources = Sources(Api(objects), "team")
        groups = [group(f"g{number}", envFrom=[from_map(f"m{number}")]) for number in range(100)]
        return await asyncio.gather(*(env_of(sources, each) for each in groups))

    found = asyncio.run(turn())
    held = [each for each in found if isinstance(each, dict)]
    assert held
    assert sum(len(each["k"]) for each in held) <= MAX_TOTAL
    (why,) = {each.reason for each in found if each not in held}
    assert why == "WaitingForEnvironment"
