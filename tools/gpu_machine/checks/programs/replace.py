"""Rank 1 dies twice: once when its peer has its weights, and once when only a file has them."""

import json
import time

import workergroups
from workergroups import RankDiedError, check_weights

group = workergroups.attach("replica", timeout=60)
group.begin()
for prepare in (None, group.save):
    if prepare is not None:
        prepare()
    began = time.monotonic()
    try:
        group.exit_at_once()
    except RankDiedError as death:
        print(death, flush=True)
    group.renew(timeout=120)
    origins = group.origin()
    seconds = time.monotonic() - began
    passports = [passport for _, _, passport in origins]
    check_weights(passports)
    came_from, loading, passport = origins[1]
    print(
        json.dumps({"from": came_from, "loading": loading, "all": seconds, "gib": passport.nbytes / (1 << 30)}),
        flush=True,
    )
