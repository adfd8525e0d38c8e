"""What the tests leave out where a package that only one module needs is not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("pyod") else ["src/headwater/outlier/pyod_mixture.py"]  # its examples need PyOD
