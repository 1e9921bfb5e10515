"""The testbed of `clients/testbed`, and how a run is seen by it."""

import json
import os
import select
import subprocess
from pathlib import Path
from typing import Any

import requests

REPOSITORY = Path(__file__).parents[3]
CLIENTS = REPOSITORY / "clients"
SCENARIOS = CLIENTS / "scenarios"
START_SECONDS = 60


class Testbed:
    """Runs until it is closed."""

    __test__ = False

    def __init__(self) -> None:
        python = os.environ.get("TESTBED_PYTHON", str(REPOSITORY / "target/clients/venv/bin/python"))
        retryd = os.environ.get("RETRYD_BIN", str(REPOSITORY / "target/debug/retryd"))
        for needed in (python, retryd):
            assert Path(needed).exists(), f"`{needed}` is missing: `clients/run python` makes it"
        self._process = subprocess.Popen(
            [python, "-m", "testbed", "--retryd", retryd],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(CLIENTS)},
        )
        ready, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline() if ready else b""
        assert line, "the testbed has not started"
        self.addresses: dict[str, Any] = json.loads(line)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def play(self, name: str) -> dict[str, Any]:
        """What was seen of the run of this name."""
        return requests.get(f"{self.addresses['control']}/plays/{name}", timeout=30).json()

    def start_retryd(self, policy: str) -> str:
        answer = requests.post(f"{self.addresses['control']}/retryds", data=policy.encode(), timeout=60)
        assert answer.ok, answer.text
        return answer.json()["address"]


def scenarios(name: str) -> dict[str, Any]:
    return json.loads((SCENARIOS / f"{name}.json").read_text())
