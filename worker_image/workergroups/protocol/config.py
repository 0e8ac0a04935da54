"""Settings of batches."""

from __future__ import annotations

import os

from workergroups.errors import InvalidTypeError
from workergroups_api.vocabulary import is_on


class _DataProtoConfigMeta(type):
    auto_padding_key = "_workergroups_auto_padding"
    """The ``meta_info`` key that turns padding on for one batch."""

    _auto_padding = False

    @property
    def auto_padding(cls) -> bool:
        """Whether batches that do not divide over the ranks are padded; also on by VERL_AUTO_PADDING=1."""
        return cls._auto_padding or is_on(os.environ.get("VERL_AUTO_PADDING"))

    @auto_padding.setter
    def auto_padding(cls, enabled: bool) -> None:
        if not isinstance(enabled, bool):
            raise InvalidTypeError(f"auto_padding must be True or False, not {enabled!r}")
        cls._auto_padding = enabled


class DataProtoConfig(metaclass=_DataProtoConfigMeta):
    """Settings of all batches in this process: set ``DataProtoConfig.auto_padding = True``."""
