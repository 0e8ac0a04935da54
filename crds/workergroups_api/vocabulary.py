"""Every word that two processes must agree on: states, reasons, condition types, components, variables and files.

This module needs only the standard library, so that the executor and the library, which run on the user's Python, can
import it. Words that Kubernetes or Ray define (`CrashLoopBackOff`, `ALIVE`) are not here, except those that a field of
ours takes.
"""

from enum import Enum


class Word(str, Enum):
    """A word of the API; it is equal to its text, and prints as it."""

    __str__ = str.__str__

    def __format__(self, format_spec: str) -> str:
        return str.__format__(self, format_spec)


def is_on(value: str | None) -> bool:
    """Return whether a variable that is a flag is on: by ``1`` or ``true``, as Ray and verl read theirs."""
    return (value or "").lower() in ("1", "true")


class ConditionType(Word):
    """What a condition of a ResourcePool or a WorkerGroup is about."""

    ADMITTED = "Admitted"
    CLUSTER_READY = "ClusterReady"
    NODES_READY = "NodesReady"
    BUNDLES_RESERVED = "BundlesReserved"
    PREFLIGHT_PASSED = "PreflightPassed"
    POOLS_READY = "PoolsReady"
    RANKS_CREATED = "RanksCreated"
    RANKS_READY = "RanksReady"
    READY = "Ready"
    # Of groups with a method to run: whether it has returned on all ranks.
    COMPLETE = "Complete"
    PROGRESSING = "Progressing"
    FAILED = "Failed"
    # The same as Failed, by the name that kstatus knows (Flux, `kubectl wait` of kpt).
    STALLED = "Stalled"
    SUSPENDED = "Suspended"
    IDLE = "Idle"
    UP_TO_DATE = "UpToDate"


POOL_CONDITIONS = (
    ConditionType.ADMITTED,
    ConditionType.CLUSTER_READY,
    ConditionType.NODES_READY,
    ConditionType.BUNDLES_RESERVED,
    ConditionType.PREFLIGHT_PASSED,
    ConditionType.READY,
    ConditionType.PROGRESSING,
    ConditionType.FAILED,
    ConditionType.STALLED,
    ConditionType.SUSPENDED,
    ConditionType.IDLE,
    ConditionType.UP_TO_DATE,
)
GROUP_CONDITIONS = (
    ConditionType.POOLS_READY,
    ConditionType.RANKS_CREATED,
    ConditionType.RANKS_READY,
    ConditionType.READY,
    ConditionType.COMPLETE,
    ConditionType.PROGRESSING,
    ConditionType.FAILED,
    ConditionType.STALLED,
    ConditionType.SUSPENDED,
    ConditionType.UP_TO_DATE,
)


class LaunchState(Word):
    """State of the launch of one incarnation; also the reason of RanksCreated while that is not True."""

    WAITING_FOR_POOLS = "WaitingForPools"
    WAITING_FOR_CODE = "WaitingForCode"
    # For the values of variables from Secrets and ConfigMaps.
    WAITING_FOR_ENVIRONMENT = "WaitingForEnvironment"
    # For ranks that have notice, and are where the new ones will be.
    WAITING_FOR_RANKS = "WaitingForRanks"
    LAUNCHING = "Launching"
    LAUNCHED = "Launched"
    LAUNCH_FAILED = "LaunchFailed"
    LAUNCH_INTERRUPTED = "LaunchInterrupted"
    # Of a suspended incarnation: whether ranks of earlier ones still run.
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"


# The states of an incarnation whose launch did not succeed.
ENDED_LAUNCHES = (LaunchState.LAUNCH_FAILED, LaunchState.LAUNCH_INTERRUPTED)


class RankEnd(Word):
    """What ended a rank, or made it useless; also the reason of RanksReady."""

    CONSTRUCTOR_FAILED = "ConstructorFailed"
    # The method that the group runs raised an exception. The process still runs.
    RUN_FAILED = "RunFailed"
    # The process ended itself, with an exit code: `sys.exit`, or Ray's `exit_actor`.
    PROCESS_EXITED = "ProcessExited"
    # A signal ended the process, or a crash.
    PROCESS_DIED = "ProcessDied"
    # Ray's memory monitor, the kubelet or the kernel ended it.
    OUT_OF_MEMORY = "OutOfMemory"
    NODE_LOST = "NodeLost"
    # Its pod was evicted, or is being: preemption, a drained node, a taint.
    PREEMPTED = "Preempted"
    # It was ended by Ray's API, or its placement group was removed.
    REMOVED = "Removed"
    # A call runs for longer than the group allows.
    HUNG = "Hung"
    # The process that created the actor ended before Ray had everything that the actor needs.
    OWNER_DIED = "OwnerDied"
    # The Ray head is gone, and with it everything that Ray knew of the rank. No condition has this reason.
    HEAD_LOST = "HeadLost"


# The ends that a user can name, in the order of the table in the docs.
FAILURES = tuple(end for end in RankEnd if end not in (RankEnd.OWNER_DIED, RankEnd.HEAD_LOST))


class Restart(Word):
    """What the operator recreates when a rank has failed."""

    NEVER = "Never"
    GROUP = "Group"
    RANK = "Rank"


class NodeState(Word):
    """State of a node whose bundles are not all reserved."""

    WAITING = "Waiting"
    RESERVING = "Reserving"


class Reason(Word):
    """Why a condition has its status. States of a launch and ends of a rank are reasons too."""

    # Of objects that the operator cannot serve.
    INVALID_SPEC = "InvalidSpec"
    INTERNAL_ERROR = "InternalError"
    OBJECT_TOO_LARGE = "ObjectTooLarge"
    READ_FAILED = "ReadFailed"
    CLUSTER_TOO_LARGE = "ClusterTooLarge"
    # Of suspended objects, and of Suspended.
    SUSPENDED = "Suspended"
    SUSPENDING = "Suspending"
    RESUMED = "Resumed"
    RELEASED = "Released"
    IDLE = "Idle"
    # Of Idle.
    IN_USE = "InUse"
    UNUSED = "Unused"
    # Of Admitted.
    ADMITTED = "Admitted"
    NOT_QUEUED = "NotQueued"
    QUEUED = "Queued"
    EVICTED = "Evicted"
    ADMISSION_ENDED = "AdmissionEnded"
    ADMITTED_WITHOUT_POOL = "AdmittedWithoutPool"
    # Of ClusterReady, and of conditions that depend on it.
    KUBERAY_MISSING = "KubeRayMissing"
    NAME_TAKEN = "NameTaken"
    APPLY_FAILED = "ApplyFailed"
    PREVIOUS_LEAVING = "PreviousLeaving"
    RESTARTING = "Restarting"
    RESTART_FAILED = "RestartFailed"
    RAY_CLUSTER_SUSPENDED = "RayClusterSuspended"
    HEAD_STARTING = "HeadStarting"
    AGENT_STARTING = "AgentStarting"
    AGENT_CONNECTED = "AgentConnected"
    AGENT_LOST = "AgentLost"
    HEAD_AWAY = "HeadAway"
    STATUS_NOT_WRITTEN = "StatusNotWritten"
    # Of NodesReady.
    PODS_REFUSED = "PodsRefused"
    ADMISSION_PENDING = "AdmissionPending"
    INSUFFICIENT_RESOURCES = "InsufficientResources"
    NO_MATCHING_NODE = "NoMatchingNode"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    IMAGE_UNFIT = "ImageUnfit"
    SETTING_UP = "SettingUp"
    SETUP_FAILED = "SetupFailed"
    RAY_VERSION_CONFLICT = "RayVersionConflict"
    TLS_CONFLICT = "TLSConflict"
    NODES_STARTING = "NodesStarting"
    PODS_CHANGED = "PodsChanged"
    NODE_LEAVING = "NodeLeaving"
    ROLLING = "Rolling"
    NODES_JOINED = "NodesJoined"
    # Of BundlesReserved.
    RESERVING = "Reserving"
    RESERVED = "Reserved"
    # Of PreflightPassed.
    CHECKING = "Checking"
    PREFLIGHT_FAILED = "PreflightFailed"
    PREFLIGHT_PASSED = "PreflightPassed"
    # Of Ready, while it is True: the head was lost with drivers, and none has connected since.
    DRIVERS_LOST = "DriversLost"
    # Of PoolsReady.
    POOL_NOT_FOUND = "PoolNotFound"
    POOL_NOT_READY = "PoolNotReady"
    POOL_SUSPENDED = "PoolSuspended"
    POOL_QUEUED = "PoolQueued"
    POOL_NOT_RESERVED = "PoolNotReserved"
    POOL_FULL = "PoolFull"
    POOLS_ON_DIFFERENT_CLUSTERS = "PoolsOnDifferentClusters"
    BUNDLES_OUTSIDE_POOL = "BundlesOutsidePool"
    BUNDLES_TAKEN_TWICE = "BundlesTakenTwice"
    GROUP_TOO_LARGE = "GroupTooLarge"
    POOLS_READY = "PoolsReady"
    # Of RanksCreated and RanksReady.
    RANKS_CREATED = "RanksCreated"
    RANKS_STARTING = "RanksStarting"
    PAUSED_BY_DEBUGGER = "PausedByDebugger"
    DEBUGGER_ATTACHED = "DebuggerAttached"
    RANKS_READY = "RanksReady"
    # Of Complete, while it is not True.
    RUN_NOT_BEGUN = "RunNotBegun"
    RUN_BEGUN = "RunBegun"
    # Of groups whose run has ended: Complete, or Failed.
    COMPLETE = "Complete"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    # Of Failed and Stalled.
    NO_FAILURE = "NoFailure"
    # Of Progressing.
    WAITING_FOR_READY = "WaitingForReady"
    BECAME_READY = "BecameReady"
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    # Of UpToDate.
    UP_TO_DATE = "UpToDate"
    CHANGES_WAIT = "ChangesWait"
    PULLING_IMAGE = "PullingImage"
    LABEL_IGNORED = "LabelIgnored"
    OLD_TEMPLATE = "OldTemplate"
    OLD_IMAGE = "OldImage"
    OLD_LIBRARY = "OldLibrary"
    SHRINKING = "Shrinking"
    OLD_SIZE = "OldSize"
    OLD_INCARNATION = "OldIncarnation"
    NOT_LAUNCHED = "NotLaunched"
    CODE_MISSING = "CodeMissing"
    OLD_ENVIRONMENT = "OldEnvironment"
    ENVIRONMENT_MISSING = "EnvironmentMissing"


# The reasons of a group whose ranks wait for a person.
PAUSED = (Reason.PAUSED_BY_DEBUGGER, Reason.DEBUGGER_ATTACHED)
# The reasons of a pool that waits in a queue, and of its groups.
IN_QUEUE = (Reason.QUEUED, Reason.EVICTED, Reason.POOL_QUEUED)
# Those that have no deadline, and are no failures.
UNTIMED = (*PAUSED, *IN_QUEUE)


# The reasons of an object that is suspended until it is used again.
SUSPENDED = (Reason.SUSPENDED, Reason.POOL_SUSPENDED, Reason.IDLE)


# The reasons of a group whose run has ended: it has no ranks and no bundles any more.
FINISHED = (Reason.COMPLETE, Reason.DEADLINE_EXCEEDED)


class EventReason(Word):
    """The reasons of the events that the operator records."""

    READY = "Ready"
    NOT_READY = "NotReady"
    # The method that the group runs has returned on all ranks.
    COMPLETE = "Complete"
    # The group is not ready because a call hangs; the event names the suspects.
    HUNG = "Hung"
    # A rank has failed while the group was not ready for another reason, such as that its node is gone.
    RANK_FAILED = "RankFailed"
    # The ranks are recreated because of a change, and not after a failure.
    NEW_INCARNATION = "NewIncarnation"
    STATUS_REFUSED = "StatusRefused"
    DRIVERS_LOST = "DriversLost"
    # The operator has deleted the pool, since it was idle.
    DELETED = "Deleted"


class Component(Word):
    """What a pod of a cluster is: the value of the label `workergroups.dev/component`."""

    HEAD = "head"
    WORKER = "worker"
    AGENT = "agent"
    # Pulls the images of a restart before it begins.
    IMAGE_CHECK = "image-check"


class Container(Word):
    """Names of containers."""

    # Ray runs in these two.
    HEAD = "ray-head"
    WORKER = "ray-worker"
    # The agent's. The observer runs the user's image, without the user's code; the reporter runs the operator's image.
    OBSERVER = "observer"
    REPORTER = "reporter"
    # The init container that looks at the image in which Ray runs.
    CHECK = "check-image"
    # The init container that makes the pod's certificate, if its Ray uses TLS.
    CERTIFICATE = "make-certificate"
    # The init container that runs `spec.setup`, before the check.
    SETUP = "run-setup"


class Vendor(Word):
    """Whose accelerators a pool's nodes have."""

    NVIDIA = "nvidia"
    AMD = "amd"
    # Any other: the pool names the resource and the variable that selects devices.
    OTHER = "other"
    NONE = "none"


class TopologyMode(Word):
    """How close to each other the nodes of a pool must be."""

    REQUIRED = "Required"
    PREFERRED = "Preferred"
    SPREAD = "Spread"


class MountedIn(Word):
    """Which pods of a pool mount a volume, or run the set-up script."""

    ALL = "All"
    NODES = "Nodes"
    HEAD = "Head"


class TolerationOperator(Word):
    """How a toleration matches a taint."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(Word):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Reservation(Word):
    """Who creates the placement groups of a pool."""

    EAGER = "Eager"
    NONE = "None"


class Resize(Word):
    """What a group does when a pool that it uses as a whole gets another size."""

    NEVER = "Never"
    FOLLOW = "Follow"


class Preflight(Word):
    """What is checked on the nodes of a pool before it becomes ready."""

    NONE = "None"
    BASIC = "Basic"
    FABRIC = "Fabric"


class PreflightState(Word):
    """How far the check of a pool's nodes is."""

    # Nodes or bundles are missing, or the executor has not begun.
    WAITING = "Waiting"
    CHECKING = "Checking"
    PASSED = "Passed"
    FAILED = "Failed"


class OnDeadline(Word):
    """What happens to a pool that does not get all its nodes within its deadline."""

    WAIT = "Wait"
    RELEASE = "Release"


class IdleAction(Word):
    """What happens to an idle pool."""

    SUSPEND = "Suspend"
    DELETE = "Delete"


class UpdateStrategyType(Word):
    """When the pods of a pool are replaced by pods of its present spec."""

    ON_RESTART = "OnRestart"
    ROLLING_UPDATE = "RollingUpdate"


class Debug(Word):
    """When a rank pauses for a debugger, apart from `breakpoint()`."""

    DISABLED = "Disabled"
    POST_MORTEM = "PostMortem"


class Variable(Word):
    """Environment variables through which the operator configures our processes."""

    ALIVE = "WORKERGROUPS_ALIVE"
    EXCHANGE = "WORKERGROUPS_EXCHANGE"
    CLUSTER = "WORKERGROUPS_CLUSTER"
    NAMESPACE = "WORKERGROUPS_NAMESPACE"
    GCS_ADDRESS = "WORKERGROUPS_GCS_ADDRESS"
    # Where the head's GCS keeps its state.
    GCS_STORAGE = "WORKERGROUPS_GCS_STORAGE"
    ACCELERATOR_VENDOR = "WORKERGROUPS_ACCELERATOR_VENDOR"
    # The name of the variable that selects the devices of a vendor of which the library knows none.
    VISIBLE_DEVICES_ENV = "WORKERGROUPS_VISIBLE_DEVICES_ENV"
    # Of a rank: its group and the digest of the variables that it takes from Secrets and ConfigMaps, as `GROUP:DIGEST`.
    GROUP_ENV = "WORKERGROUPS_GROUP_ENV"
    # Where the pod mounts these variables, with a file for each group.
    GROUP_ENV_DIRECTORY = "WORKERGROUPS_GROUP_ENV_DIRECTORY"
    # Of a rank: the UID of its group, whose next ranks may be forks of a process that has imported the same modules;
    # then the directory of that process.
    WARM = "WORKERGROUPS_WARM"
    # The file by which a node's processes learn that the node is about to go.
    NOTICE = "WORKERGROUPS_NOTICE"
    # Of a process that stands in for one that cannot start: why that is so.
    START_FAILED = "WORKERGROUPS_START_FAILED"


class JobVariable(Word):
    """Environment variables that tell a job the size of its pool, and which attempt it is."""

    NODES = "WG_NODES"
    PROCESSES_PER_NODE = "WG_PROCESSES_PER_NODE"
    # 1 for the first attempt, 2 for the first retry, and so on.
    ATTEMPT = "WG_ATTEMPT"


# The library sets for each rank which devices it sees, and Ray for the pods. Ray fails if only ROCR's variable is set.
VISIBLE_DEVICES_ENV = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
)
# The library sets these for each rank. A user's value would break the rendezvous, or show a rank the wrong devices.
PROTECTED_ENV = (
    "WORLD_SIZE",
    "RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WG_PREFIX",
    "WG_BACKEND",
    "RAY_LOCAL_RANK",
    "RAY_LOCAL_WORLD_SIZE",
    *VISIBLE_DEVICES_ENV,
)
# No rank starts with another Python than Ray's, nor as a process of another job or raylet.
FATAL_ENV = ("PYTHONHOME", "RAY_JOB_ID", "RAY_RAYLET_PID")
# The directories of the exchange, one for each direction, and the files in them that more than one process names.
ORDERS = "orders"
REPORTS = "reports"
REPORTS_FILE = "reports.json"
HEARTBEAT_FILE = "heartbeat"
PLAN_FILE = "plan.json"
