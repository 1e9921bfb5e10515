"""What becomes of a failed attempt."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from .calls import Call


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Retry:
    """The call may be repeated after `delay` seconds."""

    delay: float
    give_back: Callable[[], None] = nothing
    """To be called if it is not."""


@dataclass(frozen=True)
class Answer:
    """What comes of a failed attempt: a Retry, or None; perhaps later."""

    retry: Callable[[], Retry | None]
    pending: grpc.Future | None = None

    def wait(self) -> Retry | None:
        try:
            return self.retry()
        except BaseException:
            # Interrupted. What is granted all the same goes back.
            self.when_there(give_back)
            raise

    def when_there(self, then: Callable[[Retry | None], object]) -> None:
        if self.pending is None:
            then(self.retry())
        else:
            self.pending.add_done_callback(lambda _: then(self.retry()))


def give_back(retry: Retry | None) -> None:
    if retry is not None:
        retry.give_back()


NEVER = Answer(lambda: None)


def wait(retry: Retry, call: Call) -> bool:
    """Whether the next attempt may be sent. At once false if the deadline does not allow it."""
    remaining = call.remaining()
    if remaining is None or retry.delay < remaining:
        try:
            time.sleep(retry.delay)
        except BaseException:
            retry.give_back()
            raise
        remaining = call.remaining()
        if remaining is None or remaining > 0:
            return True
    retry.give_back()
    return False
