"""A driver: it calls a method that fails, and then computes again as soon as it can. It runs on the head."""

import sys
import time

import workergroups

method = sys.argv[1]
group = workergroups.attach("gpu", timeout=60)
print("before:", group.total(), "in incarnation", group.incarnation)
print("processes:", *[f"{each['pod']}/{each['pid']}" for each in group.look()], flush=True)
began = time.time()


def told(what: str, error: BaseException) -> None:
    """Print an error as a user's traceback would end, and its cause."""
    names = " < ".join(each.__qualname__ for each in type(error).__mro__[:4])
    print(f"{time.time() - began:.1f} s: {what} raised {names}\n<<<\n{error}\n>>>")
    for name in ("rank", "reason", "incarnation", "cause"):
        if hasattr(error, name):
            print(f"  {name}: {getattr(error, name)!r}")
    if error.__cause__ is not None:
        print(f"  from {type(error.__cause__).__name__}: {str(error.__cause__)[:600]}")


try:
    print("returned", getattr(group, method)())
except Exception as error:
    told(method, error)
for attempt in range(4):
    try:
        total = group.total()
        print(f"{time.time() - began:.1f} s: computes again: {total} in incarnation {group.incarnation}")
        break
    except Exception as error:
        told(f"total, attempt {attempt},", error)
        try:
            group.renew(timeout=90)
            print(f"{time.time() - began:.1f} s: renewed, incarnation {group.incarnation}")
        except Exception as again:
            told("renew", again)
