"""Ctrl-C and SIGTERM, held back until a run can stop with nothing half done."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Yield what tells whether a signal asked to stop; a second one raises KeyboardInterrupt.

    Python hands signals to the main thread alone: in another one nothing is held back.
    """
    asked = False

    def note(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, note) for number in _SIGNALS} if main else {}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
