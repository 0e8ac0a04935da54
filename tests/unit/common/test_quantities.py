"""Quantities as Kubernetes writes them."""

import pytest

from workergroups_common.quantities import bytes_of


@pytest.mark.parametrize(
    ("quantity", "size"),
    [("128Gi", 128 * 2**30), ("1G", 10**9), ("512", 512), ("1.5Ki", 1536), ("much", None)],
)
def test_amounts_are_as_kubernetes_writes_them(quantity, size):
    assert bytes_of(quantity) == size
