"""Many machines: models learned by the workers of a Dask cluster, from data that no machine can hold."""

from headwater.distributed.clusters import connect

__all__ = ["connect"]
