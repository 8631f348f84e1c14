"""The clock of a run: wall and CPU time, and the limit on one of them."""

import math
import time


class Clock:
    """Wall and CPU seconds since the command began, earlier sessions of the run included.

    CPU seconds count all threads of this process. `limit` is the maximum length of the run, in CPU
    seconds if `counts_cpu`, else in wall seconds. `began` is the start of the command, as the tuple
    (time.monotonic(), time.process_time()); default: now.
    """

    def __init__(
        self,
        limit: float | None = None,
        began: tuple[float, float] | None = None,
        *,
        counts_cpu: bool = False,
    ) -> None:
        self.limit = math.inf if limit is None else limit
        self.counts_cpu = counts_cpu
        self._began, self._cpu_began = began or (time.monotonic(), time.process_time())

    @property
    def seconds(self) -> float:
        """Wall seconds since the command began."""
        return time.monotonic() - self._began

    @property
    def cpu(self) -> float:
        """CPU seconds since the command began."""
        return time.process_time() - self._cpu_began

    @property
    def spent(self) -> float:
        """Seconds since the command began: CPU seconds under a CPU limit, else wall seconds."""
        return self.cpu if self.counts_cpu else self.seconds

    @property
    def left(self) -> float:
        """Seconds until the limit, CPU or wall as in `spent`; infinite without a limit."""
        return self.limit - self.spent

    def add(self, seconds: float, cpu: float) -> None:
        """Add the wall and CPU seconds of earlier sessions of the run."""
        self._began -= seconds
        self._cpu_began -= cpu


UNLIMITED = Clock()
