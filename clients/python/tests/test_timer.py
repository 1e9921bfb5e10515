"""The one thread of a client."""

import threading

from retryd.timer import Timer

SOON = 20


def test_actions_start_in_the_order_of_their_times() -> None:
    timer, started, done = Timer(), [], threading.Event()
    timer.after(0.2, lambda: (started.append("late"), done.set()))
    timer.after(0.1, lambda: started.append("early"))
    timer.after(0, lambda: 1 / 0)
    assert done.wait(SOON)
    timer.close()
    assert started == ["early", "late"]


def test_what_is_cancelled_does_not_start() -> None:
    timer, started, done = Timer(), [], threading.Event()
    entry = timer.after(0.05, lambda: started.append("cancelled"), at_close=lambda: started.append("cancelled"))
    timer.cancel(entry)
    timer.after(0.1, done.set)
    assert done.wait(SOON)
    timer.close()
    timer.cancel(entry)
    assert started == []


def test_close_ends_the_thread_and_what_waits() -> None:
    timer, started = Timer(), []
    timer.after(60, lambda: started.append("too early"), at_close=lambda: started.append("closed"))
    thread = timer._thread
    timer.close()
    assert not thread.is_alive()
    assert started == ["closed"]
    assert timer.after(0, lambda: None) is None
