"""Which cluster the demo chooses, and how it explains the choice."""

from dataclasses import replace

import pytest

from tools.demo.clusters.choice import Choice, Facts, choose, look

HAD = Facts(engine_answers=True, image="kindest/node:v1", image_is_had=True)


@pytest.mark.parametrize(
    ("facts", "choice"),
    [
        (HAD, Choice("kind", "Docker answers, and kindest/node:v1 can be had")),
        (
            replace(HAD, missing=("kind", "helm")),
            Choice("local", "not kind, since there is no kind and no helm on PATH"),
        ),
        (replace(HAD, engine_answers=False), Choice("local", "not kind, since no Docker engine answers")),
        (
            replace(HAD, image_is_had=False),
            Choice("local", "not kind, since kindest/node:v1 is not there and cannot be pulled"),
        ),
        (replace(HAD, there=("local",)), Choice("local", "it is there already")),
        (Facts(there=("kind", "local")), Choice("kind", "it is there already")),
        (Facts(named="kind", there=("local",), missing=("docker",)), Choice("kind", "CLUSTER names it")),
        (replace(HAD, named="current"), Choice("current", "CLUSTER names it")),
    ],
)
def test_the_choice_follows_the_facts_in_order(facts, choice):
    assert choose(facts) == choice


def commands(tmp_path, monkeypatch, docker):
    for name, text in {"docker": docker, "kind": "", "kubectl": "", "helm": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("KIND_NODE_IMAGE", "mine:1")


@pytest.mark.parametrize(
    ("docker", "engine_answers", "image_is_had"),
    [
        ("exit 1", False, False),
        ("exec sleep 60", False, False),
        ('[ "$1" = version ]', True, False),
        ('[ "$1 $2" != "image inspect" ]', True, True),
        ('[ "$1" != manifest ]', True, True),
        ('[ "$1" = version ] || exec sleep 60', True, False),
    ],
    ids=["no-engine", "engine-hangs", "no-image", "pulled", "there", "registry-hangs"],
)
def test_what_docker_answers_is_found_out_and_never_waited_for(
    tmp_path, monkeypatch, docker, engine_answers, image_is_had
):
    commands(tmp_path, monkeypatch, docker)
    monkeypatch.setattr("tools.demo.clusters.choice._SECONDS", 0.5)
    assert look("", ()) == Facts("", (), (), engine_answers, "mine:1", image_is_had)


def test_a_choice_that_is_clear_asks_no_docker(tmp_path, monkeypatch):
    commands(tmp_path, monkeypatch, f"touch {tmp_path}/asked")
    look("local", ())
    look("", ("local",))
    assert not (tmp_path / "asked").exists()
