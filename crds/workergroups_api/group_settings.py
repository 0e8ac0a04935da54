"""What a group's ranks get in addition to their classes: environment variables and code."""

from typing import Annotated, Any

from pydantic import Field

from workergroups_api.launch import CodeItem
from workergroups_api.model import ANYTHING, ApiModel, cel, list_map, schema
from workergroups_api.pod_settings import env_name
from workergroups_api.vocabulary import FATAL_ENV, PROTECTED_ENV

_OBJECT_NAME = "'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'"
_KEY = "'^[-._a-zA-Z0-9]+$'"
# Each folder and the file begin with a letter, a digit or '_': so no path leads out of the code's directory.
_FILE_PATH = "'^[A-Za-z0-9_][-._A-Za-z0-9]*(/[A-Za-z0-9_][-._A-Za-z0-9]*)*$'"
_ONE_SOURCE = (
    "spec.code must have either configMap or path: set configMap for files of a ConfigMap, or path for a directory "
    "that the pool mounts by spec.volumes"
)


class ConfigMapItem(CodeItem):
    """A file of the code: a key of the ConfigMap, and its path."""

    key: Annotated[
        str,
        Field(
            max_length=253,
            description="Key of the ConfigMap.",
            json_schema_extra=schema(
                cel(
                    f"self.matches({_KEY})",
                    "spec.code.configMap.items[].key must be a key of a ConfigMap: letters, digits, '-', '_' and '.'",
                )
            ),
        ),
    ]
    path: Annotated[
        str,
        Field(
            max_length=512,
            description="Path of the file in the directory of the code, such as `package/module.py`.",
            json_schema_extra=schema(
                cel(
                    f"self.matches({_FILE_PATH})",
                    "spec.code.configMap.items[].path must be a relative path such as package/module.py: letters, "
                    "digits, '-', '_' and '.', and no '..'",
                )
            ),
        ),
    ]


class ConfigMapRef(ApiModel):
    """A ConfigMap in the group's namespace whose keys are Python files."""

    name: Annotated[
        str,
        Field(
            max_length=253,
            description="Name of the ConfigMap.",
            json_schema_extra=schema(
                cel(
                    f"self.matches({_OBJECT_NAME})",
                    "spec.code.configMap.name must be the name of a ConfigMap: lower-case letters, digits, '-' and '.'",
                )
            ),
        ),
    ]
    items: Annotated[
        tuple[ConfigMapItem, ...],
        Field(
            max_length=256,
            description="The keys that are files of the code, and their paths, as in a volume of the ConfigMap. "
            "Default: all keys, each as a file of its name, without folders.",
            json_schema_extra=dict(list_map("path")),
        ),
    ] = ()


class Code(ApiModel):
    """Where the classes come from if they are not in the image."""

    config_map: Annotated[ConfigMapRef | None, Field(description="A ConfigMap whose keys are Python files.")] = None
    path: Annotated[
        str | None,
        Field(
            max_length=1024,
            description="A directory in the pods. The pool mounts it by `spec.volumes`, from an image, a claim or "
            "another volume.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^/[-_.@+=,%~A-Za-z0-9][-_.@+=,%~A-Za-z0-9/]*$')",
                    "spec.code.path must be an absolute path of letters, digits and -_.@+=,%~: begin it with '/'",
                )
            ),
        ),
    ] = None


CODE_RULES = schema(cel("has(self.configMap) != has(self.path)", _ONE_SOURCE))


class KeyRef(ApiModel):
    """A key of a Secret or a ConfigMap in the group's namespace."""

    name: Annotated[
        str,
        Field(
            max_length=253,
            description="Name of the object.",
            json_schema_extra=schema(
                cel(
                    f"self.matches({_OBJECT_NAME})",
                    "spec.env[].valueFrom must name a Secret or a ConfigMap: lower-case letters, digits, '-' and '.'",
                )
            ),
        ),
    ]
    key: Annotated[
        str,
        Field(
            max_length=253,
            description="Key of the object.",
            json_schema_extra=schema(
                cel(
                    f"self.matches({_KEY})",
                    "spec.env[].valueFrom must name a key of a Secret or a ConfigMap: letters, digits, '-', '_' "
                    "and '.'",
                )
            ),
        ),
    ]
    optional: Annotated[
        bool, Field(description="Whether the ranks start, without the variable, if object or key do not exist.")
    ] = False


class ValueSource(ApiModel):
    """As `corev1.EnvVarSource`, but for the fields that are about a pod."""

    secret_key_ref: Annotated[KeyRef | None, Field(description="A key of a Secret.")] = None
    config_map_key_ref: Annotated[KeyRef | None, Field(description="A key of a ConfigMap.")] = None
    # Named in the schema only so that the refusal can say where they belong.
    field_ref: Annotated[
        dict[str, Any] | None,
        Field(description="Refused: a pod's field. Use it in the pool's `spec.env`.", json_schema_extra=ANYTHING),
    ] = None
    resource_field_ref: Annotated[
        dict[str, Any] | None,
        Field(description="Refused: a pod's field. Use it in the pool's `spec.env`.", json_schema_extra=ANYTHING),
    ] = None


VALUE_SOURCE_RULES = schema(
    cel(
        "!has(self.fieldRef) && !has(self.resourceFieldRef)",
        "spec.env[].valueFrom: fieldRef and resourceFieldRef are about a pod: move the variable to spec.env of the "
        "pool",
    ),
    cel(
        "has(self.fieldRef) || has(self.resourceFieldRef) || has(self.secretKeyRef) != has(self.configMapKeyRef)",
        "spec.env[].valueFrom must have either secretKeyRef or configMapKeyRef: set one of them",
    ),
)
ENV_FROM_RULES = schema(
    cel(
        "has(self.secretRef) != has(self.configMapRef)",
        "spec.envFrom[] must have either secretRef or configMapRef: set one of them",
    ),
    cel(
        f"(!has(self.secretRef) || self.secretRef.name.matches({_OBJECT_NAME})) "
        f"&& (!has(self.configMapRef) || self.configMapRef.name.matches({_OBJECT_NAME}))",
        "spec.envFrom[] must name a Secret or a ConfigMap: lower-case letters, digits, '-' and '.'",
    ),
    cel(
        "!has(self.prefix) || self.prefix.matches('^([A-Za-z_][A-Za-z0-9_]*)?$')",
        "spec.envFrom[].prefix must be letters, digits and '_', not beginning with a digit: correct it",
        ".prefix",
    ),
)


_NOT_FATAL = cel(
    f"!(self in {list(FATAL_ENV)!r})",
    f"spec.env[].name: no rank starts with {', '.join(FATAL_ENV)}: remove it; PYTHONPATH adds directories of modules",
)


class EnvVar(ApiModel):
    """An environment variable of every rank."""

    name: Annotated[str, env_name(PROTECTED_ENV, "WorkerGroups for each rank", _NOT_FATAL)]
    value: Annotated[str | None, Field(max_length=32768, description="Value of the variable. Default: empty.")] = None
    value_from: Annotated[
        ValueSource | None,
        Field(
            description="Source of the value: `secretKeyRef` or `configMapKeyRef`. Set either this or `value`.",
            json_schema_extra=VALUE_SOURCE_RULES,
        ),
    ] = None


ENV_VAR_RULES = schema(
    cel(
        "!(has(self.value) && has(self.valueFrom))",
        "spec.env[] has both value and valueFrom: remove one of them",
        ".valueFrom",
    )
)
