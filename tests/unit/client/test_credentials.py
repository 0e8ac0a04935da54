"""How the command logs in: with what is in the kubeconfig, or with what a plugin prints."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from workergroups_client.api_server.credentials import Credential, login_of
from workergroups_client.api_server.kubeconfig import Context, Entry
from workergroups_client.errors import ClientError


@pytest.fixture
def context(tmp_path):
    def context(user, **cluster):
        fields = {"server": "https://cluster.example", **cluster}
        return Context("lab", "team", Entry("cluster c", fields, tmp_path), Entry("user jane", user, tmp_path))

    return context


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, None),
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "jane", "password": "secret"}, "Basic amFuZTpzZWNyZXQ="),
        ({"username": "jane"}, "Basic amFuZTo="),
        ({"token": "abc", "exec": {"command": "never-run"}}, "Bearer abc"),
    ],
)
def test_a_login_in_the_kubeconfig_is_sent(context, user, header):
    assert login_of(context(user)).credential() == Credential(header)


def test_a_token_in_a_file_is_read_again_since_kubernetes_replaces_it(context, tmp_path):
    login = login_of(context({"tokenFile": "token", "token": "old"}))
    for token in ("first", "second"):
        (tmp_path / "token").write_text(f"{token}\n")
        assert login.credential().authorization == f"Bearer {token}"
    (tmp_path / "token").unlink()
    with pytest.raises(ClientError, match="token cannot be read"):
        login.credential()


def test_a_token_that_is_no_header_is_refused_without_showing_it(context):
    with pytest.raises(ClientError, match="the token of user jane has characters") as caught:
        login_of(context({"token": "a\r\nEvil: 1"})).credential()
    assert "Evil" not in str(caught.value)


PLUGIN = """#!{python}
import json, os, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with open(sys.argv[1], "a") as runs:
    print(json.dumps([sys.argv[2:], os.environ.get("REGION"), asked]), file=runs)
answer = open(sys.argv[1] + ".answer").read()
sys.stderr.write("Loading\\nyour session has expired\\n")
sys.stdout.write(answer)
sys.exit(int(not answer))
"""


class Plugin:
    def __init__(self, folder):
        self.folder = folder
        self._runs = folder / "runs"
        path = folder / "plugin"
        path.write_text(PLUGIN.format(python=sys.executable))
        path.chmod(0o755)

    def user(self, **fields):
        return {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "./plugin",
                "args": [str(self._runs), "get-token"],
                "env": [{"name": "REGION", "value": "eu"}],
                **fields,
            }
        }

    def answers(self, **status):
        Path(f"{self._runs}.answer").write_text(json.dumps({"kind": "ExecCredential", "status": status}))

    def prints(self, text):
        Path(f"{self._runs}.answer").write_text(text)

    @property
    def runs(self):
        return [json.loads(line) for line in self._runs.read_text().splitlines()]


@pytest.fixture
def plugin(tmp_path):
    return Plugin(tmp_path)


def test_a_plugin_is_run_once_with_what_kubectl_gives_it(context, plugin):
    plugin.answers(token="abc")
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "lab"}}
    login = login_of(context(plugin.user(provideClusterInfo=True), extensions=[extension]))
    assert [login.credential().authorization for _ in range(2)] == ["Bearer abc"] * 2
    ((words, region, asked),) = plugin.runs
    assert (words, region, asked["kind"]) == (["get-token"], "eu", "ExecCredential")
    assert asked["spec"]["interactive"] is False
    assert asked["spec"]["cluster"]["server"] == "https://cluster.example"
    assert asked["spec"]["cluster"]["config"] == {"audience": "lab"}


@pytest.mark.parametrize(("minutes", "runs"), [(-1, 2), (0, 2), (5, 1)])
def test_a_plugin_runs_again_when_its_token_has_expired(context, plugin, minutes, runs):
    end = datetime.now(UTC) + timedelta(minutes=minutes)
    plugin.answers(token="abc", expirationTimestamp=end.strftime("%Y-%m-%dT%H:%M:%S.123456789Z"))
    login = login_of(context(plugin.user()))
    login.credential()
    login.credential()
    assert len(plugin.runs) == runs


def test_a_plugin_may_print_a_certificate(context, plugin):
    plugin.answers(clientCertificateData="CERTIFICATE", clientKeyData="KEY")
    found = login_of(context(plugin.user())).credential()
    assert found.authorization is None
    assert [Path(path).read_text() for path in found[1:]] == ["CERTIFICATE", "KEY"]


def test_a_plugin_that_prints_a_token_leaves_the_certificate_of_the_kubeconfig(context, plugin):
    plugin.answers(token="abc")
    user = plugin.user() | {"client-certificate": "/etc/jane.crt", "client-key": "/etc/jane.key"}
    assert login_of(context(user)).credential() == ("Bearer abc", "/etc/jane.crt", "/etc/jane.key")


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("", "ended with exit code 1: your session has expired"),
        ("no JSON", "printed no ExecCredential"),
        ("[]", "printed no ExecCredential"),
        ('{"status": null}', "printed no ExecCredential"),
        ('{"status": {"token": 7}}', "printed no ExecCredential"),
        ('{"status": {"token": "a", "expirationTimestamp": "soon"}}', "printed no ExecCredential"),
        ('{"status": {"clientCertificateData": "a"}}', "printed no ExecCredential"),
        ('{"status": {}}', "printed neither a token nor a certificate"),
    ],
)
def test_a_plugin_that_fails_is_named_with_its_reason_and_how_to_log_in(context, plugin, printed, said):
    plugin.prints(printed)
    with pytest.raises(ClientError, match=r"^the login plugin \./plugin of user jane ") as caught:
        login_of(context(plugin.user())).credential()
    assert said in str(caught.value)
    assert "log in again with the tool of your cluster" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"command": "gke-gcloud-auth-plugin-x", "installHint": "get it from here"}, "cannot be run .*: get it from h"),
        ({"command": "aws-iam-authenticator-x"}, "cannot be run .*: install aws-iam-authenticator-x"),
        ({"command": None}, "names no command"),
        ({"command": ["a"]}, "command of exec of user jane must be a string"),
        ({"args": "get-token"}, "args of exec of user jane must be a list"),
        ({"env": {"A": "b"}}, "env of exec of user jane must be a list of mappings"),
    ],
)
def test_a_plugin_that_cannot_run_is_named(context, plugin, fields, said):
    with pytest.raises(ClientError, match=said):
        login_of(context(plugin.user(**fields))).credential()


@pytest.mark.parametrize(
    ("command", "said"), [("/usr/bin/aws", "aws sso login"), ("gke-gcloud-auth-plugin", "gcloud auth login")]
)
def test_how_to_log_in_again_is_known_for_the_large_clouds(context, command, said):
    assert said in login_of(context({"exec": {"command": command}})).again


def test_an_auth_provider_is_left_to_the_kubernetes_package(configure, tmp_path, monkeypatch):
    # Its end is in 2100, so that it needs no renewal.
    token = "e30.eyJleHAiOiA0MTAyNDQ0ODAwfQ.c2ln"
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    configure("https://cluster.example", user)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    from workergroups_client.api_server.kubeconfig import load

    assert login_of(load(None)).credential().authorization == f"Bearer {token}"
    configure("https://cluster.example", {"auth-provider": {"name": "oidc", "config": {"x": "y"}}})
    with pytest.raises(ClientError, match=r"auth-provider of user jane.* gives no token .*log in again"):
        login_of(load(None)).credential()
