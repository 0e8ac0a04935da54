"""The page docs/memory.md: what a soak has shown, as a curve and in figures."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from tests.soak.memory import MOST_MIB, Sample, rise_mib

POINTS = 25
# Renewals in a second of a cluster whose agent is connected.
RENEWALS = 0.4
_PAGE = """# The operator's memory

`make soak` writes without end to everything that the operator watches. It fails if the operator's memory rises by
{most:.0f} MiB from the second quarter to the last, see [testing.md](testing.md#memory).
`python -m tests.soak --page=docs/memory.md` writes this page.

This run was on {date}, on {cores} cores that also ran the API server and {clusters} clusters. It had {events:,} events
in {minutes:.0f} minutes, as many as 100 clusters at rest have in {rest:.0f} minutes.

```mermaid
xychart-beta
    x-axis "events (thousands)" 0 --> {thousands:.0f}
    y-axis "MiB" 0 --> {top}
    line [{line}]
```

| written | times |
|---|--:|
{rows}

From the second quarter to the last, the memory rose by {rise:.1f} MiB, at {resident:.0f} MiB.
"""


def page(samples: Sequence[Sample], clusters: int) -> str:
    """Return the page's text."""
    last = samples[-1]
    points = samples[:: max(1, len(samples) // POINTS)]
    return _PAGE.format(
        most=MOST_MIB,
        date=datetime.now(UTC).date(),
        cores=os.cpu_count(),
        clusters=clusters,
        events=last.events,
        minutes=last.seconds / 60,
        rest=last.events / RENEWALS / 100 / 60,
        thousands=last.events / 1000,
        top=(int(max(each.resident_mib for each in samples)) // 32 + 1) * 32,
        line=", ".join(f"{each.resident_mib:.1f}" for each in points),
        rows="\n".join(f"| {name} | {count:,} |" for name, count in sorted(last.writes.items())),
        rise=rise_mib(samples),
        resident=last.resident_mib,
    )
