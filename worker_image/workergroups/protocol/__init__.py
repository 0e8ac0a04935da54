"""`DataProto`: batches of tensors and other columns that travel between a driver and its ranks.

verl's module of that name; it imports torch, tensordict and numpy when an operation needs them.
"""

from .config import DataProtoConfig
from .data_proto import DataProto, DataProtoItem
from .future import DataProtoFuture
from .reshaping import fold_batch_dim, pad_dataproto_to_divisor, unfold_batch_dim, unpad_dataproto
from .serialization import (
    deserialize_single_tensor,
    deserialize_tensordict,
    serialize_single_tensor,
    serialize_tensordict,
)
from .union import union_numpy_dict, union_tensor_dict

__all__ = [
    "DataProto",
    "DataProtoConfig",
    "DataProtoFuture",
    "DataProtoItem",
    "deserialize_single_tensor",
    "deserialize_tensordict",
    "fold_batch_dim",
    "pad_dataproto_to_divisor",
    "serialize_single_tensor",
    "serialize_tensordict",
    "unfold_batch_dim",
    "union_numpy_dict",
    "union_tensor_dict",
    "unpad_dataproto",
]
