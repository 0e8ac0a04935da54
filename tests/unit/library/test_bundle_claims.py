"""That of two programs that want a bundle, at most one gets it."""

import pytest

from workergroups.for_verl import claims

A, B, C = ("group", 0), ("group", 1), ("group", 2)


class Gcs:
    """The key-value store of Ray's GCS, the jobs that live, and the one of this process."""

    def __init__(self):
        self.values = {}
        self.alive = {"01", "02"}
        self.own = "01"
        # What another program does before this one asks for all keys.
        self.meanwhile = lambda: None

    def put_if_absent(self, namespace, key, value):
        is_new = key not in self.values
        self.values.setdefault(key, value)
        return is_new

    def delete(self, namespace, key):
        self.values.pop(key, None)

    def keys(self, namespace):
        self.meanwhile()
        return sorted(self.values)


@pytest.fixture
def gcs(monkeypatch):
    gcs = Gcs()
    monkeypatch.setattr(claims, "key_value_store", gcs)
    monkeypatch.setattr(claims, "live_jobs", lambda: gcs.alive)
    monkeypatch.setattr(claims, "_own_job", lambda: gcs.own)
    return gcs


def test_what_a_job_has_claimed_is_taken_until_it_ends(gcs):
    assert claims.claim([A, B])
    gcs.own = "02"
    assert claims.taken() == {A, B}
    assert not claims.claim([B, C])
    assert claims.taken() == {A, B}, "all or none"
    assert claims.claim([C])
    gcs.alive.remove("01")
    assert claims.taken() == {C}
    assert claims.claim([A, B])


def test_two_programs_of_one_job_do_not_get_the_same(gcs):
    assert claims.claim([A])
    assert not claims.claim([B, A])
    assert claims.taken() == {A}


def test_two_jobs_that_claim_at_the_same_time_do_not_both_get_it(gcs):
    gcs.meanwhile = lambda: gcs.values.setdefault("group/0/02", b"1")
    assert not claims.claim([A, B])
    assert gcs.values == {"group/0/02": b"1"}, "what is left is the other job's"


def test_a_job_that_starts_meanwhile_keeps_its_claims(gcs):
    def start():
        gcs.alive.add("03")
        gcs.values["group/2/03"] = b"1"

    gcs.meanwhile = start
    assert claims.taken() == {C}


@pytest.mark.parametrize("key", ["", "group", "group/x/01", "group//01", "group/0", "a/b/c/d"])
def test_what_is_no_claim_is_removed(gcs, key):
    gcs.values[key] = b"1"
    assert claims.taken() == set()
    assert gcs.values == {}
