"""Which API server and which user a kubeconfig names."""

import json
import os
import stat
from base64 import b64encode
from pathlib import Path

import pytest

from tests.unit.client.api_server import kubeconfig
from workergroups_client.api_server import kubeconfig as module
from workergroups_client.api_server.kubeconfig import load
from workergroups_client.errors import ClientError

SERVER = "https://cluster.example:6443"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Make these the kubeconfigs, in the order in which KUBECONFIG names them."""

    def write(*documents):
        paths = [tmp_path / str(number) / "config" for number in range(len(documents))]
        for path, document in zip(paths, documents, strict=True):
            path.parent.mkdir()
            path.write_text(document if isinstance(document, str) else json.dumps(document))
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(["", str(tmp_path / "absent"), *map(str, paths)]))
        return [path.parent for path in paths]

    return write


def test_the_current_context_names_server_namespace_and_user(write):
    write(kubeconfig(f"{SERVER}/"))
    found = load(None)
    assert (found.name, found.server, found.namespace, found.user.text("token")) == ("lab", SERVER, "team", "t")


def test_a_context_without_namespace_or_user_has_the_default_namespace_and_no_login(write):
    write({**kubeconfig(SERVER), "contexts": [{"name": "lab", "context": {"cluster": "c"}}]})
    found = load(None)
    assert (found.namespace, dict(found.user.fields)) == ("default", {})


def test_of_several_files_the_first_that_has_an_entry_wins(write):
    first = {"current-context": "", "users": [{"name": "jane", "user": {"token": "first"}}]}
    second = kubeconfig(SERVER)
    third = {**kubeconfig("https://third.example"), "current-context": "other"}
    third["contexts"].append({"name": "other", "context": {"cluster": "c", "user": "jane"}})
    write(first, second, third)
    assert (load(None).name, load(None).server, load(None).user.text("token")) == ("lab", SERVER, "first")
    assert load("other").name == "other"


def test_files_are_relative_to_the_kubeconfig_that_names_them(write):
    (folder,) = write(kubeconfig(SERVER, {"tokenFile": "secret/token"}, **{"certificate-authority": "/etc/ca.crt"}))
    found = load(None)
    assert found.user.path("tokenFile") == str(folder / "secret/token")
    assert found.cluster.file("certificate-authority") == "/etc/ca.crt"


def test_data_wins_over_a_file_and_only_the_user_can_read_it(write):
    both = {"client-key": "/etc/key", "client-key-data": b64encode(b"KEY").decode()}
    write(kubeconfig(SERVER, both))
    path = Path(load(None).user.file("client-key"))
    assert path.read_bytes() == b"KEY"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_yaml_is_read_as_kubectl_reads_it(write):
    write(
        f"""
        current-context: lab
        clusters: [{{name: c, cluster: {{server: '{SERVER}'}}}}]
        contexts:
        - context: {{cluster: c, user: jane}}
          name: lab
        users: null
        """.replace("user: jane", "namespace: a")
    )
    assert (load(None).server, load(None).namespace) == (SERVER, "a")


CONTEXT = {"name": "lab", "context": {"cluster": "c", "user": "jane"}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clusters": []}, "names cluster c, but it has none"),
        ({"users": [{"name": "joe", "user": {}}]}, "names user jane, but it has joe"),
        ({"contexts": [{"name": "lab", "context": {}}]}, r"names cluster \(none\), but it has c"),
        ({"contexts": [CONTEXT, 3]}, "contexts of .* must be a list of mappings"),
        ({"contexts": [{"name": "lab"}]}, r"names cluster \(none\), but it has c"),
        ({"contexts": [{"name": "lab", "context": 7}]}, "context of contexts of .* must be a mapping"),
        ({"contexts": []}, "its current context is lab, but it has none"),
        ({"contexts": [{"context": {}}]}, "one of the contexts of .* has no name"),
        ({"contexts": [{"name": 7, "context": {}}]}, "name of contexts of .* must be a string"),
        ({"users": "jane"}, "users of .* must be a list of mappings"),
        ({"clusters": [{"name": "c", "cluster": "there"}]}, "cluster of clusters of .* must be a mapping"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "has no server such as https://"),
        ({"clusters": [{"name": "c", "cluster": {"server": "cluster.example"}}]}, "has no server such as https://"),
        ({"current-context": "gone"}, "its current context is gone, but it has lab"),
        ({"current-context": None}, r"names no current context \(kubectl config use-context NAME\); it has lab"),
        ({"current-context": ["lab"]}, "current-context of .* must be a string"),
    ],
)
def test_what_is_wrong_in_a_kubeconfig_is_named(write, change, said):
    write({**kubeconfig(SERVER), **change})
    with pytest.raises(ClientError, match=f"^there is no usable kubeconfig: .*{said}.* Set KUBECONFIG, or copy"):
        _ = load(None).server


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not YAML (line 2)"),
        ("\x00", "is not YAML"),
        ("&a [*a]", "is not a kubeconfig, but list"),
        ("just words", "is not a kubeconfig, but str"),
        ("", "is not a kubeconfig, but empty"),
        ("when: 2026-99-99", "is not YAML"),
        ("[" * 5000, "is not YAML"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_named(write, text, said):
    (folder,) = write(text)
    with pytest.raises(ClientError) as caught:
        load(None)
    assert f"{folder / 'config'} {said}" in str(caught.value)


def test_a_directory_and_a_file_of_another_encoding_are_named(write, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path))
    with pytest.raises(ClientError, match=r"cannot be read \(Is a directory\)"):
        load(None)
    (tmp_path / "latin").write_bytes(b"name: \xe9")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "latin"))
    with pytest.raises(ClientError, match="latin is not YAML"):
        load(None)


def test_a_kubeconfig_where_one_may_not_look_is_named_with_the_reason(tmp_path, monkeypatch):
    # Root may look everywhere, but at no name that is this long.
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / ("n" * 300)))
    with pytest.raises(ClientError, match=r"nnn cannot be read \(File name too long\)"):
        load(None)


def test_without_a_home_directory_there_is_no_kubeconfig(monkeypatch):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as without an entry for the user
    with pytest.raises(ClientError, match=r"there is no file ~/\.kube/config"):
        load(None)


@pytest.mark.parametrize("value", ["false", "true", 1])
def test_certificates_are_not_left_unchecked_by_a_text(write, value):
    write(kubeconfig(SERVER, **{"insecure-skip-tls-verify": value}))
    with pytest.raises(ClientError, match=r"insecure-skip-tls-verify of cluster c in .* must be true or false"):
        load(None).cluster.flag("insecure-skip-tls-verify")


def test_an_unknown_context_is_answered_with_those_that_exist(write):
    write(kubeconfig(SERVER))
    with pytest.raises(ClientError, match="the kubeconfig has no context prod; it has lab: choose one"):
        load("prod")


def test_a_pod_without_a_kubeconfig_uses_its_service_account(write, tmp_path, monkeypatch):
    for name, text in (("token", "t"), ("namespace", "own\n"), ("ca.crt", "CA")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(module, "_IN_CLUSTER", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    found = load(None)
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "own")
    assert found.cluster.file("certificate-authority") == str(tmp_path / "ca.crt")
    assert found.user.path("tokenFile") == str(tmp_path / "token")
    write(kubeconfig(SERVER))
    assert load(None).name == "lab"
