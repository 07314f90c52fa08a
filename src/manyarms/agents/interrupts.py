"""Ctrl-C in the midst of a change: it waits until the change is done, so that no belief is left half changed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

Handler = Callable[[int, Any], Any]

try:  # signal's own functions turn numbers into enumerations, which takes ten times as long as all the rest
    from _signal import getsignal as _get  # type: ignore[import-not-found]
    from _signal import signal as _set
except ImportError:  # an interpreter that has it elsewhere
    from signal import getsignal as _get
    from signal import signal as _set

_SIGINT = int(signal.SIGINT)
_MAIN = threading.main_thread().ident


class HeldBack:
    """Between its making and `release` an interrupt from the keyboard is only noted; `release` lets it happen."""

    __slots__ = ("_noted", "_usual")

    def __init__(self, thread: int) -> None:
        """`thread`: the one that asks. Signals go to the main thread alone; in others there is nothing to hold back."""
        self._noted: list[tuple[int, Any]] = []
        self._usual: Handler | None = None
        if thread == _MAIN:
            usual = _get(_SIGINT)
            if callable(usual):  # neither ignored nor the end of the process, nor somebody's in C
                self._usual = usual
                _set(_SIGINT, self._note)

    def _note(self, number: int, frame: Any) -> None:
        self._noted.append((number, frame))

    def release(self) -> None:
        """As it was before; an interrupt that came meanwhile happens now."""
        if self._usual is not None:
            _set(_SIGINT, self._usual)
            if self._noted:
                self._usual(*self._noted[-1])


__all__ = ["HeldBack"]
