"""The verbs of `job`: submit, list, logs, status, stop."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from workergroups_client import Cluster, Pool
from workergroups_client.job_lookup import all_jobs, the_job
from workergroups_client.jobs import Job, JobRecord
from workergroups_client.runtime_env import read

from .exit_codes import INTERRUPTED
from .options import Command, Context, Format, Namespace, PoolName, complete_name
from .output import Output, Teller, age, duration, err, note, print_json, print_text, table

app = typer.Typer(no_args_is_help=True, help="Ray jobs of a pool: submit, list, logs, status, stop.")
JobName = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]",
        help="The id of a job; or a pool or group, for its latest job. By default the latest job of the namespace.",
        autocompletion=complete_name,
    ),
]


@app.command()
def submit(
    pool: PoolName,
    command: Command = None,
    working_dir: Annotated[
        Path | None, typer.Option(help="A directory of this machine; the job runs in a copy of it.")
    ] = None,
    runtime_env: Annotated[Path | None, typer.Option(help="A file with Ray's runtime environment, as YAML.")] = None,
    env: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the job; may be given several times.")] = None,
    env_from: Annotated[
        list[str] | None,
        typer.Option(help="secret/NAME or secret/NAME:KEY: hidden variables for CMD; may be given several times."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The id of the job.")] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Print the id and return.")] = False,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Run a command as a job on the head of a pool's cluster.

    It prints the output of the job, and exits with its code.
    """
    if not command:
        raise typer.BadParameter("say what to run: workergroups job submit POOL -- python train.py")
    variables = dict(map(_variable, env or []))
    given = read(runtime_env) if runtime_env else {}
    cluster = Cluster(namespace, context)
    with Teller() as tell, Pool(pool, cluster, tell) as found:
        tell(f"submitting to pool {found.name}")
        job = found.submit(
            command, working_dir=working_dir, runtime_env=given, env=variables, env_from=env_from or (), job_id=name
        )
        tell.quiet()
        if not no_wait:
            note(f"job {job.id} on pool {found.name}")
            raise typer.Exit(follow(job, cluster, tell))
        print_json({"id": job.id, "pool": found.name}) if output is Output.json else print_text(job.id)


@app.command("list")
def list_jobs(
    pool: Annotated[
        str | None, typer.Argument(help="A pool or group; by default all.", autocompletion=complete_name)
    ] = None,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """List the jobs of a pool's Ray cluster, or of all clusters."""
    cluster = Cluster(namespace, context)
    with Teller() as tell, all_jobs(cluster, pool, tell) as found:
        records = [(pool.name, record) for pool, record in found]
    if output is Output.json:
        print_json([_as_json(pool, record) for pool, record in records])
        return
    if not records:
        where = f"of {pool}" if pool else f"in namespace {cluster.namespace}"
        note(f"no jobs {where}; a Ray head that ends loses its jobs")
        return
    table(
        *("JOB", "STATE", "POOL", "STARTED", "TOOK", "COMMAND"),
        rows=[
            (record.id, record.state, pool, age(record.started), _took(record), _short(record.entrypoint))
            for pool, record in records
        ],
    )


@app.command()
def logs(
    job: JobName = None,
    follow_it: Annotated[bool, typer.Option("--follow", "-f", help="Continue until the job has ended.")] = False,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Print the output of a job's driver.

    With --follow, it continues until the job has ended, and exits with the job's code.
    """
    cluster = Cluster(namespace, context)
    with Teller() as tell, the_job(cluster, job, tell) as found:
        tell.quiet()
        if follow_it:
            raise typer.Exit(follow(found, cluster, tell))
        for text in found.logs():
            sys.stdout.write(text)


@app.command()
def status(
    job: JobName = None, output: Format = Output.text, namespace: Namespace = None, context: Context = None
) -> None:
    """Print the state of a job.

    It exits with the job's code, or with 0 while the job runs.
    """
    with Teller() as tell, the_job(Cluster(namespace, context), job, tell) as found:
        _tell_state(found.pool, found.record(), output)


@app.command()
def stop(
    job: JobName = None, output: Format = Output.text, namespace: Namespace = None, context: Context = None
) -> None:
    """Stop a job, and return when it has ended."""
    with Teller() as tell, the_job(Cluster(namespace, context), job, tell) as found:
        tell(f"stopping job {found.id}")
        record = found.stop()
    print_json(_as_json(found.pool, record)) if output is Output.json else print_text(f"{record.id} {record.state}")


def follow(job: Job, cluster: Cluster, tell: Teller) -> int:
    """Print a job's output until it ends, and return its exit code; on Ctrl-C, ask whether to stop it."""
    try:
        for text in job.logs(follow=True, tell=tell):
            tell.quiet()
            sys.stdout.write(text)
            sys.stdout.flush()
        record = job.record()
    except KeyboardInterrupt:
        tell.quiet()
        _interrupted(job, cluster, tell)
        return INTERRUPTED
    # The rest of Ray's message is the end of the log, which has just been printed.
    why = "" if record.exit_code == 0 else f": {record.message.partition(', last available logs')[0]}"
    note(f"job {job.id}: {record.state}{why}")
    return record.exit_code or 0


def _interrupted(job: Job, cluster: Cluster, tell: Teller) -> None:
    if sys.stdin.isatty() and err.is_terminal and _is_to_stop(job):
        tell(f"stopping job {job.id}")
        state = job.stop().state
        tell.quiet()
        note(f"job {job.id}: {state}")
        return
    where = f"-n {cluster.namespace}"
    note(
        f"job {job.id} keeps running.\n  follow it:  workergroups job logs {job.id} -f {where}\n"
        f"  stop it:    workergroups job stop {job.id} {where}"
    )


def _is_to_stop(job: Job) -> bool:
    err.print()
    try:
        answer = typer.prompt(f"Job {job.id} runs. Stop it, or detach? [s/D]", "d", show_default=False, err=True)
    except (typer.Abort, KeyboardInterrupt):
        return False
    return str(answer).lower().startswith("s")


def _tell_state(pool: str, record: JobRecord, output: Output) -> None:
    if output is Output.json:
        print_json(_as_json(pool, record))
    else:
        print_text(f"{record.id} {record.state} on pool {pool}: {record.message}")
    raise typer.Exit(record.exit_code or 0)


def _as_json(pool: str, record: JobRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "pool": pool,
        "state": record.state,
        "entrypoint": record.entrypoint,
        "message": record.message,
        "started": record.started,
        "ended": record.ended,
        "exitCode": record.exit_code,
    }


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(
            f"{text}: write NAME=VALUE. All who can see the job can see the value: put a password into a Secret, for "
            f"--env-from or for the pool's spec.env",
            param_hint="--env",
        )
    return name, value


def _took(record: JobRecord) -> str:
    if record.started is None:
        return "-"
    return duration(record.ended - record.started) if record.ended else f"{age(record.started)} so far"


def _short(entrypoint: str) -> str:
    return entrypoint if len(entrypoint) <= 60 else f"{entrypoint[:57]}..."
