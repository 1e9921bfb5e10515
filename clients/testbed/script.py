"""What a request asks the faulty service to do, by its headers."""

import json

from .plays import Plays


def next_step(plays: Plays, headers: dict[str, str]) -> dict:
    """The step of the attempt that these headers came with. Without a script it succeeds."""
    script = json.loads(headers.get("x-script", '[{"ok": true}]'))
    return plays[headers.get("x-play", "")].arrive(script, headers)
