"""What Ray's metrics say of ranks and devices."""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from workergroups.naming import RankName
from workergroups.processes.tables import DeviceRow, RankSecondsRow
from workergroups.processes.usage import device_rows, rank_names, seconds_rows

GIB = 1 << 30
SECONDS = 'ray_workergroups_rank_seconds_total{WorkerId="%s",activity="%s",group="policy",method="%s"} %s\n'
GAUGE = 'ray_node_%s{GpuDeviceName="H200",GpuIndex="%d",SessionName="s"} %s\n'


@dataclass
class Actor:
    name: str
    worker_id: str


def name(rank, incarnation=1, birth=0, group="policy"):
    return RankName(group, f"uid-of-{group}", incarnation, rank, 2, birth)


def samples(page):
    return [sample for family in text_string_to_metric_families(page) for sample in family.samples]


def test_only_the_latest_process_of_each_rank_counts():
    actors = [
        Actor("runner", "w9"),
        Actor(str(name(0, incarnation=9)), "old-0"),
        Actor(str(name(1, incarnation=10)), "w1"),
        Actor(str(name(0, incarnation=10)), "w0"),
        Actor(str(name(1, incarnation=10, birth=1)), "w1-again"),
        Actor(str(name(0, group="critic")), "c0"),
    ]
    assert {worker: (each.group, each.rank) for worker, each in rank_names(actors).items()} == {
        "w0": ("policy", 0),
        "w1-again": ("policy", 1),
        "c0": ("critic", 0),
    }


def test_seconds_are_those_of_living_ranks():
    page = (
        SECONDS % ("w0", "Running", "step", 6.5) + SECONDS % ("w0", "Idle", "", 2) + SECONDS % ("dead", "Idle", "", 9)
    )
    names = {"w0": name(0), "w1": name(1)}
    assert list(seconds_rows(names, samples(page))) == [
        RankSecondsRow(str(name(0)), "Running", "step", 6.5),
        RankSecondsRow(str(name(0)), "Idle", "", 2.0),
        RankSecondsRow(str(name(1)), "", "", 0.0),
    ]


def test_devices_have_their_memory_in_bytes():
    figures = [("gpus_utilization", 0, 93), ("gram_used", 0, 41 * 1024), ("gram_available", 0, 99 * 1024)]
    page = "".join(GAUGE % each for each in [*figures, ("gpus_utilization", 1, 0)]) + "ray_node_cpu_count{} 8\n"
    assert list(device_rows("ppo-a", samples(page))) == [
        DeviceRow("ppo-a", "0", "H200", 0.93, 41 * GIB, 140 * GIB),
        DeviceRow("ppo-a", "1", "H200", 0.0, 0, 0),
    ]
