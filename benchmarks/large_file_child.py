"""The process whose memory is measured: fit a mixture to a file, print the resident peak in MB and the rows."""

from __future__ import annotations

import sys
from pathlib import Path

from headwater import GaussianMixture, stream


def main(path: str) -> None:
    model = GaussianMixture(10, covariance_type="diag", random_state=0, n_threads=1)
    for chunk in stream(path):
        model.partial_fit(chunk)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):  # is reset when a program starts; ru_maxrss would include the parent process
            print(int(line.split()[1]) / 1024, model.n_samples_seen_)


if __name__ == "__main__":
    main(sys.argv[1])
