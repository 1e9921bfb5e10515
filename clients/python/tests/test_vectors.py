"""Every portable case of tests/vectors, over a connection to a real retryd."""

import contextlib

import grpc
import pytest

from .testbed import Testbed
from .vectors import File, load_all, portable


def test_vectors(testbed: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    played, failed = 0, []
    for file in load_all():
        with contextlib.closing(connect(testbed, file)) as shared:
            for sequence in portable(file):
                played += 1
                if sequence.case.get("alone"):
                    with contextlib.closing(connect(testbed, file)) as own:
                        differs = sequence.play(own)
                else:
                    differs = sequence.play(shared)
                failed.extend(f"{file.name}: {sequence.case['name']}: {it}" for it in differs)
    with capsys.disabled():
        print(f"\nvectors: {played} sequences played")
    assert failed == []


def connect(testbed: Testbed, file: File) -> grpc.Channel:
    """To a retryd of its own."""
    return grpc.insecure_channel(testbed.start_retryd(file.policy))
