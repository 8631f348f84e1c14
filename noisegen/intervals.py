"""How far a share that was counted may be from the true one."""

from math import sqrt

Z95 = 1.959963984540054  # the normal quantile of 97.5 %


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share of n observations (Wilson, 1927); (0, 1) of none.

    The share may be a mean of values from 0 to 1: their variance is at most that of a yes and no,
    so the interval is then wide enough.
    """
    if not n:
        return 0.0, 1.0
    z = Z95**2 / n
    middle = (share + z / 2) / (1 + z)
    reach = Z95 / (1 + z) * sqrt(share * (1 - share) / n + z / (4 * n))
    return max(0.0, middle - reach), min(1.0, middle + reach)
