"""The base of all API models: camelCase in YAML, snake_case in Python, immutable values."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ApiModel(BaseModel):
    """A value of the API. Unknown fields are dropped, as the API server does with what its schema does not name."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    def to_json(self) -> dict[str, Any]:
        """The value as the API server stores it: camelCase, without what is not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class ApiObject(ApiModel):
    """A namespaced object of ours."""

    metadata: dict[str, Any]

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        """The object's namespace."""
        return str(self.metadata["namespace"])

    @property
    def uid(self) -> str:
        """The object's UID."""
        return str(self.metadata["uid"])

    @property
    def generation(self) -> int:
        """The generation of the spec."""
        return int(self.metadata.get("generation", 0))


def cel(rule: str, message: str, field_path: str | None = None) -> dict[str, str]:
    """One validation rule in CEL; the message names the field and the way out."""
    return {"rule": rule, "message": message} | ({"fieldPath": field_path} if field_path else {})


def immutable(field: str, way_out: str) -> dict[str, str]:
    """A rule for a spec: `field` keeps the value (or the absence) that it was created with."""
    return cel(
        f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
        f"spec.{field} is immutable: {way_out}",
        f".{field}",
    )


def schema(*rules: dict[str, str], **extra: Any) -> dict[str, Any]:
    """JSON schema extras of a field or model: CEL rules and `x-kubernetes-*` keywords (given with underscores)."""
    keywords: dict[str, Any] = {
        (key.replace("_", "-") if key.startswith("x_") else key): value for key, value in extra.items()
    }
    if rules:
        keywords["x-kubernetes-validations"] = list(rules)
    return keywords


def list_map(*keys: str) -> Mapping[str, Any]:
    """Schema extras of a list whose items have an identity."""
    return schema(x_kubernetes_list_type="map", x_kubernetes_list_map_keys=list(keys))


# Any JSON value or object that the API server is to keep as it is.
ANYTHING = schema(x_kubernetes_preserve_unknown_fields=True)
