"""Many machines: models learned by the workers of a Dask cluster, from data that no machine can hold."""

from headwater.distributed.clusters import ClusterError, connect, tls
from headwater.distributed.fitting import fit
from headwater.distributed.runs import UnreadError
from headwater.distributed.steps import Step
from headwater.estimators.distributed_report import DistributedReport, Round

__all__ = ["ClusterError", "DistributedReport", "Round", "Step", "UnreadError", "connect", "fit", "tls"]
