"""A device plugin of Kubernetes: pods get the GPUs that they ask for, and the driver, without being privileged.

`python3 -m tools.gpu_machine.device_plugin DIRECTORY NUMBER...` offers the GPUs with these numbers to the kubelet whose
plugins' sockets are in that directory, until it is ended.
"""

import re
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from tools.gpu_machine.device_messages import MESSAGES
from tools.gpu_machine.layout import DRIVER, RESOURCE

OFFERED = "the kubelet has been told of"
_SOCKET = "workergroups-gpu.sock"


def gpus() -> dict[str, Path]:
    """Return the device file of each GPU of this machine, by its number."""
    found = {path.name.removeprefix("nvidia"): path for path in _device_files() if _is_gpu(path)}
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def _device_files() -> list[Path]:
    return sorted(path for path in Path("/dev").glob("nvidia*") if path.is_char_device())


def _is_gpu(path: Path) -> bool:
    return re.fullmatch(r"nvidia\d+", path.name) is not None


def options(_request: Any, _context: grpc.ServicerContext) -> Any:
    """Answer that the plugin has no options."""
    return MESSAGES["DevicePluginOptions"]()


def list_and_watch(numbers: Sequence[str], _request: Any, _context: grpc.ServicerContext) -> Iterator[Any]:
    """List the GPUs once, and keep the stream open: the kubelet takes its end for the plugin's."""
    devices = [MESSAGES["Device"](ID=number, health="Healthy") for number in numbers]
    yield MESSAGES["ListAndWatchResponse"](devices=devices)
    print(f"{OFFERED} {len(devices)} GPUs", flush=True)
    threading.Event().wait()


def allocate(request: Any, _context: grpc.ServicerContext) -> Any:
    """Answer with what each container needs for its GPUs."""
    containers = [_given(list(container.devices_ids)) for container in request.container_requests]
    return MESSAGES["AllocateResponse"](container_responses=containers)


def _given(numbers: list[str]) -> Any:
    """Give a container its GPUs, the files by which all of them are controlled, and the driver."""
    print(f"a container gets the GPUs {', '.join(numbers)}", flush=True)
    files = [path for path in _device_files() if not _is_gpu(path) or path in [gpus()[number] for number in numbers]]
    specs = [MESSAGES["DeviceSpec"](container_path=str(path), host_path=str(path), permissions="rw") for path in files]
    driver = MESSAGES["Mount"](container_path=DRIVER, host_path=DRIVER, read_only=True)
    return MESSAGES["ContainerAllocateResponse"](devices=specs, mounts=[driver])


def serve(directory: Path, numbers: Sequence[str]) -> None:
    """Listen, then register with the kubelet, which connects at once."""
    handlers = {
        "GetDevicePluginOptions": _unary(options, "Empty"),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(partial(list_and_watch, numbers), *_as_bytes("Empty")),
        "Allocate": _unary(allocate, "AllocateRequest"),
    }
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers)])
    (directory / _SOCKET).unlink(missing_ok=True)
    server.add_insecure_port(f"unix://{directory / _SOCKET}")
    server.start()
    _register(directory)
    server.wait_for_termination()


def _register(directory: Path) -> None:
    # Go's servers refuse the name that older versions of gRPC make of a socket's path.
    named = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix://{directory / 'kubelet.sock'}", options=named) as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register", *reversed(_as_bytes("Empty")))
        request = MESSAGES["RegisterRequest"](version="v1beta1", endpoint=_SOCKET, resource_name=RESOURCE)
        register(request, timeout=10)


def _unary(answer: Any, request: str) -> grpc.RpcMethodHandler:
    return grpc.unary_unary_rpc_method_handler(answer, *_as_bytes(request))


def _as_bytes(received: str) -> tuple[Any, Any]:
    """Return how to read the message that is received, and how to write any."""
    return MESSAGES[received].FromString, lambda message: message.SerializeToString()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2:])
