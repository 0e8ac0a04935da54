"""The verbs of `job`: submit, list, logs, status, stop."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from workergroups_client import ClientError, Cluster, Pool
from workergroups_client.handles.job_lookup import all_jobs, the_job
from workergroups_client.jobs.attempts import summary
from workergroups_client.jobs.jobs import Job
from workergroups_client.jobs.left_calls import LeftCall
from workergroups_client.jobs.records import LOST, UNKNOWN, JobRecord
from workergroups_client.jobs.runtime_env import read
from workergroups_client.times import age, duration

from .command import VerbApp
from .command_words import look_at, note_expanded
from .exit_codes import INTERRUPTED
from .json_output import job_item, print_list
from .options import Command, Context, Env, EnvFrom, Format, Namespace, PoolName, WorkingDir, complete_name, variable
from .output import Output, ProgramOutput, Teller, err, note, out, print_text, table

_LONGEST = 60

_NAMES_A_JOB = "The id of a job; or a pool or group, for its latest job."

app = VerbApp(no_args_is_help=True, help="Ray jobs of a pool: submit, list, logs, status, stop.")
JobName = Annotated[
    str | None,
    typer.Argument(
        metavar="[JOB]",
        help=f"{_NAMES_A_JOB} By default the latest job of the namespace.",
        autocompletion=complete_name,
    ),
]


@app.command()
def submit(
    pool: PoolName,
    command: Command = None,
    working_dir: WorkingDir = None,
    runtime_env: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with Ray's runtime environment, as YAML.")
    ] = None,
    env: Env = None,
    env_from: EnvFrom = None,
    name: Annotated[str | None, typer.Option(metavar="JOB", help="The id of the job.")] = None,
    node: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Run CMD on a node of the pool, by its number from 0, not on the head. It sees the devices of the "
            "node, and reserves none.",
        ),
    ] = None,
    retries: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Submit it again, at most so often, if its driver fails or is lost with Ray's head.",
        ),
    ] = 0,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Print the id and return.")] = False,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Run a command as a job on the head of a pool's cluster.

    With --node, it runs on a node. It prints the output of the job, and exits with its code. With --retries, it also
    submits the job again while it runs, when the pool and the groups on it are ready.
    """
    if retries and no_wait:
        raise typer.BadParameter("--retries needs this command to follow the job: leave out --no-wait")
    if not command:
        raise typer.BadParameter("say what to run: workergroups job submit POOL -- python train.py")
    variables = dict(map(variable, env or []))
    given = read(runtime_env) if runtime_env else {}
    of_file = given.get("env_vars")
    note_expanded({**(of_file if isinstance(of_file, dict) else {}), **variables})
    look_at(command, has_working_dir=working_dir is not None or "working_dir" in given)
    cluster = Cluster(namespace, context)
    with Teller() as tell, Pool(pool, cluster, tell) as found:
        tell(f"submitting to pool {found.name}")
        job = found.submit(
            command,
            working_dir=working_dir,
            runtime_env=given,
            env=variables,
            env_from=env_from or (),
            job_id=name,
            node=node,
            retries=retries,
            on_retry=lambda sentence: _note_between(tell, sentence),
        )
        tell.quiet()
        if not no_wait:
            note(f"job {job.id} on pool {found.name}")
            raise typer.Exit(follow(job, cluster, tell))
        print_list("Job", [{"id": job.id, "pool": found.name}]) if output is Output.json else print_text(job.id)


@app.command("list")
def list_jobs(
    pool: Annotated[
        str | None,
        typer.Argument(metavar="[POOL]", help="A pool or group; by default all.", autocompletion=complete_name),
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
        print_list("Job", [job_item(pool, record) for pool, record in records])
        return
    if not records:
        where = f"of {pool}" if pool else f"in namespace {cluster.namespace}"
        note(f"no jobs {where}")
        return
    table(
        *("JOB", "STATE", "POOL", "ATTEMPT", "STARTED", "TOOK", "COMMAND"),
        rows=[
            (
                *(record.id, record.state, pool, record.attempt, age(record.started)),
                *(_took(record), _short(record.entrypoint)),
            )
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
        output = ProgramOutput()
        for piece in found.logs():
            output.print(piece)


@app.command()
def status(
    job: JobName = None, output: Format = Output.text, namespace: Namespace = None, context: Context = None
) -> None:
    """Print the state of a job.

    It exits with the job's code, or with 0 while the job runs.
    """
    with Teller() as tell, the_job(Cluster(namespace, context), job, tell) as found:
        record = found.record()
    _tell_state(found.pool, record, output)


@app.command()
def stop(
    job: Annotated[str, typer.Argument(metavar="JOB", help=_NAMES_A_JOB, autocompletion=complete_name)],
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Stop a job, and return when it has ended."""
    with Teller() as tell, the_job(Cluster(namespace, context), job, tell) as found:
        record = _stopped(found, tell)
    if output is Output.json:
        print_list("Job", [job_item(found.pool, record)])
    else:
        print_text(f"{record.id} {record.state}")


def follow(job: Job, cluster: Cluster, tell: Teller) -> int:
    """Print a job's output until it ends, and return its exit code; on Ctrl-C, ask whether to stop it."""
    output = ProgramOutput()
    try:
        for piece in job.logs(follow=True, tell=tell):
            tell.quiet()
            output.print(piece)
        record = job.record()
    except KeyboardInterrupt:
        tell.quiet()
        _interrupted(job, cluster, tell)
        return INTERRUPTED
    note(f"job {job.id}: {record.state if record.exit_code == 0 else summary(record)}")
    return record.exit_code or 0


def _note_between(tell: Teller, sentence: str) -> None:
    tell.quiet()
    note(sentence)


def _interrupted(job: Job, cluster: Cluster, tell: Teller) -> None:
    if ended := _ended(job):
        note(f"job {job.id}: {ended.state}; this command submits no other attempt")
        return
    if sys.stdin.isatty() and err.is_terminal and _is_to_stop(job):
        note(f"job {job.id}: {_stopped(job, tell).state}")
        return
    note(
        f"job {job.id} keeps running.\n  follow it:  workergroups job logs {job.id} -f {cluster.options}\n"
        f"  stop it:    workergroups job stop {job.id} {cluster.options}"
    )


def _stopped(job: Job, tell: Teller) -> JobRecord:
    """Stop a job, note which ranks go on with its calls, and return its record."""
    tell(f"stopping job {job.id}")
    calls: list[LeftCall] = []
    with suppress(ClientError):  # whatever can be said of its calls, the job is stopped
        calls = job.calls()
    record = job.stop()
    tell.quiet()
    for call in calls:
        note(str(call))
    return record


def _ended(job: Job) -> JobRecord | None:
    """Return the record of a job that has ended, such as one between two attempts."""
    try:
        record = job.record()
    except ClientError:
        return None
    return record if record.has_ended else None


def _is_to_stop(job: Job) -> bool:
    err.print()
    try:
        answer = typer.prompt(f"Job {job.id} runs. Stop it, or detach? [s/D]", "d", show_default=False, err=True)
    except (typer.Abort, KeyboardInterrupt):
        return False
    return str(answer).lower().startswith("s")


def _tell_state(pool: str, record: JobRecord, output: Output) -> None:
    if output is Output.json:
        print_list("Job", [job_item(pool, record)])
    else:
        print_text(f"{record.id} {record.state} on pool {pool}: {record.message}")
    raise typer.Exit(record.exit_code or 0)


def _took(record: JobRecord) -> str:
    if record.started is None:
        return "-"
    if record.ended:
        return duration(record.ended - record.started)
    return "-" if record.state in (LOST, UNKNOWN) else f"{age(record.started)} so far"


def _short(entrypoint: str) -> str:
    """Return the command in one line, which fits into a terminal; elsewhere, all of it."""
    entrypoint = " ".join(entrypoint.split())
    is_short = len(entrypoint) <= _LONGEST or not out.is_terminal
    return entrypoint if is_short else f"{entrypoint[: _LONGEST - 3]}..."
