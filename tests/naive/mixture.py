"""The slow twin of the step from log-densities to responsibilities: row by row."""

import numpy as np

LOWEST = -1e300


def share_rows(joint, log_weights, labels):
    """Return responsibilities (n, K) and the log-likelihood (n,) of each row."""
    shares, scores = np.zeros(joint.shape), np.zeros(len(joint))
    for i, row in enumerate(joint):
        whole = np.maximum(row + log_weights, LOWEST)
        if len(labels) and labels[i] >= 0:
            shares[i, labels[i]], scores[i] = 1.0, whole[labels[i]]
            continue
        peak = whole.max()
        parts = np.exp(whole - peak)
        shares[i], scores[i] = parts / parts.sum(), peak + np.log(parts.sum())
    return shares, scores
