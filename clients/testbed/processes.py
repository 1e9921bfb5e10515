"""Real retryd processes, each with a policy of its own."""

import asyncio
import json
import subprocess
import tempfile
from pathlib import Path

START_SECONDS = 60


class Processes:
    def __init__(self, binary: str) -> None:
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory(prefix="retryd-testbed-")
        self.running: list[subprocess.Popen] = []

    async def start(self, policy: str) -> str:
        """Starts one that serves `policy`, and tells its address."""
        file = Path(self.folder.name) / f"policy-{len(self.running)}.yaml"
        file.write_text(policy)
        log = file.with_suffix(".log")
        listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
        with log.open("w") as output:
            command = [self.binary, "serve", "--policy", str(file), "--drain-delay", "0s", *listen]
            process = subprocess.Popen(command, stdout=output, stderr=output)  # noqa: ASYNC220 stopped without a loop
        self.running.append(process)
        for _ in range(START_SECONDS * 100):
            if address := served_at(log.read_text()):
                return address
            if process.poll() is not None:
                break
            await asyncio.sleep(0.01)
        raise RuntimeError(f"`retryd serve` does not serve:\n{log.read_text()}")

    def stop(self) -> None:
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()
        self.folder.cleanup()


def served_at(log: str, port: str = "calls") -> str | None:
    """Where one of its ports is, as soon as the log of `retryd serve` tells."""
    for line in log.splitlines(keepends=True):
        if line.endswith("\n") and line.startswith("{"):
            entry = json.loads(line)
            if entry.get("message") == "listening" and entry.get("port") == port:
                return entry["listen"]
    return None
