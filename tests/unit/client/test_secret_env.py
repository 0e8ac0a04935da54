"""Variables of a job out of Secrets: which they are, and that they arrive as they are."""

import os
import subprocess
from base64 import b64encode

import pytest

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups_client.errors import ClientError, NotFoundError, UnreachableError
from workergroups_client.jobs import secret_env
from workergroups_client.jobs.secret_env import as_typed, handed_over, script, variables_of
from workergroups_client.pods.pods import PodContainer

AWKWARD = b'it\'s "$HOME" `id`\n\\ \xff end\n'


def secret(name, **data):
    encoded = {key.replace("__", "."): b64encode(value).decode() for key, value in data.items()}
    return {"kind": "Secret", "metadata": {"name": name, "namespace": "team"}, "data": encoded}


class Cluster(FakeCluster):
    def names(self, kind):
        return [each["metadata"]["name"] for each in self.select(kind)]


CLUSTER = Cluster(
    pool("ppo"),
    secret("wandb", WANDB_API_KEY=b"hidden key", WANDB_MODE=b"hidden mode"),
    secret("more", WANDB_MODE=b"offline"),
    secret("tls", tls__crt=b"hidden", HOST=b"hidden host"),
    secret("binary", BLOB=b"hidden\0"),
    {"kind": "Secret", "metadata": {"name": "empty", "namespace": "team"}},
)


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ([], {}),
        (["secret/wandb"], {"WANDB_API_KEY": b"hidden key", "WANDB_MODE": b"hidden mode"}),
        (["secret/wandb:WANDB_API_KEY"], {"WANDB_API_KEY": b"hidden key"}),
        (["secret/wandb", "secret/more"], {"WANDB_API_KEY": b"hidden key", "WANDB_MODE": b"offline"}),
        (["secret/tls:HOST"], {"HOST": b"hidden host"}),
    ],
)
def test_all_keys_of_a_secret_or_one(sources, found):
    assert variables_of(CLUSTER, sources) == found


@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        ("wandb", ClientError, "wandb: write secret/NAME for all keys"),
        ("configmap/wandb", ClientError, "write secret/NAME"),
        ("secret/wand", NotFoundError, "there is no Secret wand in namespace team; did you mean wandb?"),
        ("secret/nothing-like-it", NotFoundError, "there is no Secret nothing-like-it in namespace team$"),
        ("secret/wandb:WANDB_KEY", NotFoundError, "has no key WANDB_KEY; did you mean WANDB_API_KEY"),
        ("secret/wandb:x", NotFoundError, "has no key x; it has WANDB_API_KEY, WANDB_MODE"),
        (
            "secret/tls",
            ClientError,
            r"cannot be names of variables \(tls\.crt\): choose the other keys one by one, with secret/tls:KEY",
        ),
        ("secret/binary", ClientError, "BLOB has a zero byte"),
        ("secret/empty", ClientError, "Secret empty has no keys"),
    ],
)
def test_what_cannot_be_had_is_reported_without_a_value(source, kind, said):
    with pytest.raises(kind, match=said) as refused:
        variables_of(CLUSTER, [source])
    assert not any(value in str(refused.value) for value in ("hidden", b64encode(b"hidden").decode()))


def test_near_names_are_for_who_may_list_secrets():
    class Refusing(Cluster):
        def names(self, kind):
            raise ClientError("forbidden")

    with pytest.raises(NotFoundError, match=r"no Secret wand in namespace team$"):
        variables_of(Refusing(), ["secret/wand"])


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_command_has_each_value_as_it_is_and_the_file_is_gone_before_it_begins(tmp_path, shell):
    path = tmp_path / "variables"
    path.write_bytes(script({"ONE": AWKWARD, "TWO": b""}, str(path)))
    printing = f"test ! -e {path} && printf %s \"$ONE\" | tee /dev/null && env | grep -a '^TWO='"
    done = subprocess.run([shell, "-c", f". {path} && {printing}"], capture_output=True, check=True, env=os.environ)
    assert done.stdout == AWKWARD + b"TWO=\n"


class Head:
    """What runs there, instead of `execute`."""

    def __init__(self, code=0):
        self.code, self.commands, self.input = code, [], b""

    def __call__(self, cluster, pod, container, command, *, stdin=None, stderr, **_):
        self.commands.append(command)
        while stdin is not None and (data := stdin()):
            self.input += data
        stderr(b"disk full")
        return self.code


def in_head():
    return PodContainer("ppo-head", "ray-head")


def test_values_are_in_what_the_head_reads_and_nowhere_else(monkeypatch):
    on_head = Head()
    monkeypatch.setattr(secret_env, "execute", on_head)
    with handed_over(CLUSTER, in_head, {"KEY": b"precious"}) as before:
        assert before.startswith(". /dev/shm/workergroups-env-")
    ((*_, path, _),) = on_head.commands
    assert before == f". {path} && "
    assert on_head.input == script({"KEY": b"precious"}, path)
    assert "precious" not in str(on_head.commands)
    assert as_typed(f"{before}a && b") == "a && b" == as_typed("a && b")


@pytest.mark.parametrize(
    "command",
    [
        ". /dev/shm/workergroups-env-x; evil && real",
        ". /dev/shm/workergroups-env-0123456789abcdef; evil && real",
        ". /dev/shm/workergroups-env-0123456789abcdef0 && real",
        "evil; . /dev/shm/workergroups-env-0123456789abcdef && real",
    ],
)
def test_a_command_that_only_looks_like_ours_is_shown_whole(command):
    assert as_typed(command) == command


def test_a_job_that_ray_refuses_leaves_nothing(monkeypatch):
    on_head = Head()
    monkeypatch.setattr(secret_env, "execute", on_head)
    with pytest.raises(ClientError), handed_over(CLUSTER, in_head, {"KEY": b"precious"}) as before:
        raise ClientError("Ray refused the request")
    assert on_head.commands[-1] == ["rm", "-f", before.split()[1]]


@pytest.mark.parametrize("error", [UnreachableError, KeyboardInterrupt])
def test_a_job_that_may_have_been_submitted_finds_its_variables(monkeypatch, error):
    on_head = Head()
    monkeypatch.setattr(secret_env, "execute", on_head)
    with pytest.raises(error), handed_over(CLUSTER, in_head, {"KEY": b"precious"}):
        raise error("the answer is lost")
    assert [command[0] for command in on_head.commands] == ["sh"]


def test_a_head_that_does_not_take_them_says_why(monkeypatch):
    monkeypatch.setattr(secret_env, "execute", Head(code=1))
    refused = pytest.raises(ClientError, match="could not be written to the memory of pod ppo-head: disk full")
    with refused, handed_over(CLUSTER, in_head, {"KEY": b"precious"}):
        pass


def test_without_variables_nothing_is_asked_of_the_head():
    with handed_over(CLUSTER, in_head, {}) as before:
        assert before == ""
