"""verl's own trainer with vLLM on a pool, as jobs of the command line: it learns, also when its processes are killed.

The pieces must have been made with `--verl`.
"""

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tools.console import ToolError
from tools.gpu_machine.checks import command_line, pods
from tools.gpu_machine.checks.site import Site
from tools.gpu_machine.layout import RESULTS

POOL = "verl"
_DATA = "/data"
LEARNED = 0.4  # 0.016 is chance
_STEP = re.compile(r"step:(\d+) - .*critic/score/mean:(?:np\.float64\()?([\d.e-]+)")
_STEPS = 8
# An attempt takes two minutes until its first step.
_JOB_SECONDS = 900
_COMMON = (
    *("python3", "-m", "verl.trainer.main_ppo"),
    *(f"data.train_files={_DATA}/data.parquet", f"data.val_files={_DATA}/data.parquet"),
    *("data.train_batch_size=32", "data.max_prompt_length=16", "data.max_response_length=16"),
    "data.dataloader_num_workers=0",
    *(f"actor_rollout_ref.model.path={_DATA}/model", "actor_rollout_ref.model.use_remove_padding=False"),
    "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
    *("actor_rollout_ref.actor.strategy=fsdp2", "actor_rollout_ref.actor.fsdp_config.use_torch_compile=False"),
    *("actor_rollout_ref.actor.ppo_mini_batch_size=32", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=32"),
    "actor_rollout_ref.actor.optim.lr=1e-3",
    "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=32",
    *("actor_rollout_ref.rollout.name=vllm", "actor_rollout_ref.rollout.n=8"),
    *("actor_rollout_ref.rollout.gpu_memory_utilization=0.3", "actor_rollout_ref.rollout.max_model_len=64"),
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=32",
    "actor_rollout_ref.rollout.agent.num_workers=2",
    *(f"reward.custom_reward_function.path={_DATA}/reward.py", "reward.num_workers=1"),
    *(f"trainer.total_training_steps={_STEPS}", "trainer.total_epochs=50"),
    *("trainer.val_before_train=False", "trainer.test_freq=-1", "trainer.logger=[console]"),
    *("algorithm.adv_estimator=grpo", "actor_rollout_ref.actor.use_kl_loss=True"),
    "actor_rollout_ref.actor.kl_loss_coef=0.001",
)
_EAGER = ("trainer.use_v1=True", "actor_rollout_ref.rollout.enforce_eager=True")
_GRAPHS = ("trainer.use_v1=False", "actor_rollout_ref.rollout.enforce_eager=False")
_NO_CHECKPOINTS = ("trainer.save_freq=-1", "trainer.resume_mode=disable")
_CHECKPOINTS = ("trainer.save_freq=1", "trainer.resume_mode=auto", f"trainer.default_local_dir={_DATA}/checkpoints")


@dataclass
class Run:
    """What a job printed."""

    code: int | None = None
    steps: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    @property
    def curve(self) -> str:
        """Return its scores by step."""
        return ", ".join(f"{step}: {score:.3f}" for step, score in zip(self.steps, self.scores, strict=True))

    @property
    def has_learned(self) -> bool:
        """Return whether it ended well, with a score beyond chance."""
        return self.code == 0 and bool(self.scores) and self.scores[-1] > LEARNED


def check_eager(site: Site) -> None:
    """Train with the V1 trainer, and look at it meanwhile."""
    have_pool(site)
    run = _train(site, "eager", *_EAGER, _parallel(1), *_NO_CHECKPOINTS, at_steps={2: _look})
    site.say.row("GRPO with a reference policy learns: V1 trainer, tensor parallel 1", run.has_learned, run.curve)


def check_graphs(site: Site) -> None:
    """Train with the older trainer, and with what vLLM does for speed."""
    have_pool(site)
    share = site.gpus // site.nodes
    run = _train(site, "graphs", *_GRAPHS, _parallel(share), *_NO_CHECKPOINTS)
    site.say.row(f"older trainer, CUDA graphs, tensor parallel {share}: it learns", run.has_learned, run.curve)


def check_kills(site: Site) -> None:
    """Kill the driver of a training, then a rank, and then replace the pool's nodes."""
    have_pool(site)
    faults = {3: _kill_driver, 5: _kill_rank, 7: _roll}
    run = _train(site, "killed", *_EAGER, _parallel(1), *_CHECKPOINTS, retries=4, at_steps=faults)
    site.say.row("it learns on when driver and rank are killed and the pool is rolled", run.has_learned, run.curve)
    site.say.row("each attempt goes on at the last checkpoint", 0 < run.steps.count(1) < 2, run.steps)


CHECKS: dict[str, Callable[[Site], None]] = {
    "verl": check_eager,
    "verl-graphs": check_graphs,
    "verl-kills": check_kills,
}


def _parallel(processes: int) -> str:
    return f"actor_rollout_ref.rollout.tensor_model_parallel_size={processes}"


def have_pool(site: Site) -> None:
    """Let the pool be ready, with the model and its data on all nodes."""
    if f"resourcepool.workergroups.dev/{POOL}" not in site.kubectl("get", "resourcepools", "--output=name").split():
        pods.clear(site.kubectl)
    pods.apply(site, _pool(site))
    pods.until_ready(site, f"resourcepool/{POOL}")
    well, printed = pods.run_program(site, "tiny_model", _DATA)
    if not well:
        raise ToolError(f"the model cannot be made: {printed}")


def _pool(site: Site) -> dict[str, object]:
    env = {
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
        "VLLM_ALLREDUCE_USE_SYMM_MEM": "0",  # it would use multicast over NVLink, see image.py
        "HF_HUB_OFFLINE": "1",
        "RAY_DEDUP_LOGS": "0",
    }
    cpus = 28 // site.nodes  # a bundle of verl's has ten, and its queue of batches nine
    return site.pool(
        POOL,
        env=[{"name": name, "value": value} for name, value in env.items()],
        volumes=[{"mountPath": _DATA, "hostPath": {"path": "/var/verl", "type": "DirectoryOrCreate"}}],
        resources={"requests": {"cpu": 1, "memory": "8Gi"}, "limits": {"cpu": cpus, "memory": "100Gi"}},
        sharedMemory="32Gi",
    )


def _train(
    site: Site,
    name: str,
    *options: str,
    retries: int = 0,
    at_steps: Mapping[int, Callable[[Site, str], None]] = MappingProxyType({}),
) -> Run:
    """Submit a job; once it has printed a step of `at_steps`, call that. Its output becomes a file."""
    share = site.gpus // site.nodes
    size = (
        f"trainer.nnodes={site.nodes}",
        f"trainer.n_gpus_per_node={share}",
        f"trainer.total_training_steps={_STEPS}",
    )
    waiting = dict(at_steps)
    run = Run()
    words = ("job", "submit", POOL, f"--name={name}", f"--retries={retries}", "--", *_COMMON, *options, *size)
    log = Path(RESULTS, f"verl-{name}-{site.nodes}.log")
    with command_line.start(*words) as job, log.open("w") as file:
        assert job.stdout is not None
        deadline = threading.Timer(_JOB_SECONDS, job.kill)
        deadline.start()
        for line in job.stdout:
            file.write(line)
            file.flush()
            if found := _STEP.search(line):
                step, score = int(found[1]), float(found[2])
                run.steps.append(step)
                run.scores.append(score)
                site.say(f"{name}: step {step}, score {score:.3f}")
                if action := waiting.pop(step, None):
                    threading.Thread(target=action, args=(site, name)).start()
        deadline.cancel()
    run.code = job.returncode
    if run.code:
        site.say(log.read_text()[-4000:])
    return run


def _look(site: Site, name: str) -> None:
    """Read what a user reads who asks where the training stands."""
    for words in (("status", POOL), ("job", "list", POOL), ("stacks", f"job/{name}", f"--pool={POOL}")):
        code, printed = command_line.run(site, *words)
        if words[0] == "stacks":
            found = sorted(set(re.findall(r"process(?:es)? (VLLM::\w+)", printed)))
            site.say.row("the job's stacks show vLLM's own processes", code == 0 and bool(found), found)


def _kill_driver(site: Site, name: str) -> None:
    _kill(site, pods.head(site), "ray-head", r"^python3 -m verl", "driver")


def _kill_rank(site: Site, name: str) -> None:
    _kill(site, pods.workers(site)[-1], "ray-worker", r"^ray::WorkerDict", "rank")


def _roll(site: Site, name: str) -> None:
    code, printed = command_line.run(site, "restart", f"pool/{POOL}", "--yes", seconds=300)
    site.say.row("the pool is rolled under the training", code == 0, printed.splitlines()[-1:])


def _kill(site: Site, pod: str, container: str, pattern: str, what: str) -> None:
    try:
        killed = pods.execute(site, pod, "pkill", "-KILL", "--echo", "--oldest", "-f", pattern, container=container)
    except ToolError as error:
        site.say.row(f"the {what} can be killed", False, error)
    else:
        site.say(f"the {what} in {pod} is killed: {killed}")
