"""The base of all API models: camelCase in YAML, snake_case in Python, immutable values."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ApiModel(BaseModel):
    """A value of the API. Unknown fields are dropped, as the API server drops fields that its schema does not name."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def to_json(self) -> dict[str, Any]:
        """Return the value as the API server stores it: camelCase, without fields that are not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class ApiObject(ApiModel):
    """One of our objects. Both kinds are namespaced."""

    metadata: dict[str, Any]

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        """The object's namespace."""
        return str(self.metadata["namespace"])

    def in_namespace(self, command: str) -> str:
        """Return a command on this object that can be copied from a message."""
        return f"{command} -n {self.namespace}"

    @property
    def uid(self) -> str:
        """The object's UID."""
        return str(self.metadata["uid"])

    @property
    def generation(self) -> int:
        """The generation of the spec."""
        return int(self.metadata.get("generation", 0))


def cel(rule: str, message: str, field_path: str | None = None) -> dict[str, str]:
    """Return a validation rule in CEL; its message names the field and says what to do."""
    return {"rule": rule, "message": message} | ({"fieldPath": field_path} if field_path else {})


def immutable(field: str, way_out: str) -> dict[str, str]:
    """Return a rule for a spec: `field` must keep the value, or the absence, that it was created with."""
    return cel(
        f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        f"spec.{field} is immutable: {way_out}",
        f".{field}",
    )


def schema(*rules: dict[str, str], **extra: Any) -> dict[str, Any]:
    """Return JSON schema extras of a field or model: CEL rules, `x-kubernetes-*` keywords (given with underscores)."""
    keywords: dict[str, Any] = {
        (key.replace("_", "-") if key.startswith("x_") else key): value for key, value in extra.items()
    }
    if rules:
        keywords["x-kubernetes-validations"] = list(rules)
    return keywords


def list_map(*keys: str) -> Mapping[str, Any]:
    """Return schema extras of a list whose items have an identity."""
    return schema(x_kubernetes_list_type="map", x_kubernetes_list_map_keys=list(keys))


# A list that its writer replaces as a whole. Others' items in a list with identities would stay, and count towards its
# limit: then the API server would refuse what the writer adds.
WHOLE = schema(x_kubernetes_list_type="atomic")
# Any JSON value, which the API server keeps as it is.
ANYTHING = schema(x_kubernetes_preserve_unknown_fields=True)
