"""Many machines: the workers of a Dask cluster learn a model from data that no machine can hold."""

from headwater.diagnostics.distributed_report import DistributedReport, Round
from headwater.distributed.api import fit
from headwater.distributed.clusters import ClusterError, connect, tls
from headwater.distributed.job import UnreadError
from headwater.distributed.progress import Step

__all__ = ["ClusterError", "DistributedReport", "Round", "Step", "UnreadError", "connect", "fit", "tls"]
