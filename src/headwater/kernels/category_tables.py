"""Tables of categories: log-probabilities of the codes of rows, and what rows add to the cells of their codes."""

from headwater.kernels._jit import kernel


@kernel
def add_log_probabilities(codes, table, found):
    """Add to each row of found (n, K) the log-probabilities (d, cells, K) of its codes (n, d), numbers; NaN is a gap."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0.0:
                code = int(codes[i, j])
                for k in range(found.shape[1]):
                    found[i, k] += table[j, code, k]


@kernel
def count_categories(codes, shares, table):
    """Add the shares (n, K) of rows to the cells (d, cells, K) of their codes (n, d), numbers; NaN is a gap."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            if codes[i, j] >= 0.0:
                code = int(codes[i, j])
                for k in range(shares.shape[1]):
                    table[j, code, k] += shares[i, k]
