"""The one thread of a client: it starts what is due, and nothing that blocks."""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

Action = Callable[[], None]


def nothing() -> None:
    pass


@dataclass(order=True)
class Entry:
    due: float
    place: int
    action: Action = field(compare=False)
    at_close: Action = field(compare=False)


class Timer:
    """The thread begins with the first thing to do, and ends with `close`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: list[Entry] = []
        self._places = itertools.count()
        self._thread: threading.Thread | None = None
        self._closed = False

    def after(self, seconds: float, action: Action, at_close: Action = nothing) -> Entry | None:
        """Starts `action` when the time has come, or `at_close` if the timer is closed before; None if it is."""
        entry = Entry(time.monotonic() + seconds, next(self._places), action, at_close)
        with self._changed:
            if self._closed:
                return None
            heapq.heappush(self._entries, entry)
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="retryd-timer", daemon=True)
                self._thread.start()
        return entry

    def cancel(self, entry: Entry) -> None:
        """Neither of its actions is started, unless that has happened already."""
        with self._changed:
            if entry in self._entries:
                self._entries.remove(entry)
                heapq.heapify(self._entries)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            entries, self._entries = self._entries, []
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        for entry in entries:
            start(entry.at_close)

    def _run(self) -> None:
        while (action := self._next()) is not None:
            start(action)

    def _next(self) -> Action | None:
        with self._changed:
            while not self._closed:
                wait = self._entries[0].due - time.monotonic() if self._entries else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._entries).action
                self._changed.wait(wait)
        return None


def start(action: Action) -> None:
    """One that fails must not take the others with it."""
    try:
        action()
    except Exception:
        log.exception("retryd: a timed action failed")
