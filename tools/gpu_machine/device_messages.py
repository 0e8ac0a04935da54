"""The messages of the kubelet's device plugin API, v1beta1: the fields that the plugin uses, with their numbers.

The API's source is api.proto in k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1.
"""

from typing import Any

from google.protobuf import descriptor_pb2, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_TEXT, _TRUTH = _FIELD.TYPE_STRING, _FIELD.TYPE_BOOL

# The type of a field that may be repeated is in a list; a name is that of another message.
_FIELDS: dict[str, dict[str, tuple[int, Any]]] = {
    "Empty": {},
    "DevicePluginOptions": {},
    "RegisterRequest": {"version": (1, _TEXT), "endpoint": (2, _TEXT), "resource_name": (3, _TEXT)},
    "Device": {"ID": (1, _TEXT), "health": (2, _TEXT)},
    "ListAndWatchResponse": {"devices": (1, ["Device"])},
    "ContainerAllocateRequest": {"devices_ids": (1, [_TEXT])},
    "AllocateRequest": {"container_requests": (1, ["ContainerAllocateRequest"])},
    "Mount": {"container_path": (1, _TEXT), "host_path": (2, _TEXT), "read_only": (3, _TRUTH)},
    "DeviceSpec": {"container_path": (1, _TEXT), "host_path": (2, _TEXT), "permissions": (3, _TEXT)},
    "ContainerAllocateResponse": {"mounts": (2, ["Mount"]), "devices": (3, ["DeviceSpec"])},
    "AllocateResponse": {"container_responses": (1, ["ContainerAllocateResponse"])},
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="deviceplugin.proto", package="v1beta1", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            label = _FIELD.LABEL_REPEATED if isinstance(kind, list) else _FIELD.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            one = kind[0] if isinstance(kind, list) else kind
            if isinstance(one, str):
                added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".v1beta1.{one}"
            else:
                added.type = one
    return file


MESSAGES: dict[str, Any] = {
    name.removeprefix("v1beta1."): message for name, message in message_factory.GetMessages([_file()]).items()
}
