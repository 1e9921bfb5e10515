"""One pod: a real retryd, and the kubelet's probes of it."""

import asyncio
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.processes import served_at

PIPE = asyncio.subprocess.PIPE

# As in the kit of deploy/, but for the delay, which the tests would wait for in vain.
DRAIN_DELAY_SECONDS = 3
GRACE_SECONDS = 30
PERIOD_SECONDS = 1
FAILURES_MAX = 3
READINESS, LIVENESS = "retryd.v1.RetryService", "liveness"


@dataclass
class Tools:
    """What a pod is made of."""

    retryd: str
    probe: str


class Pod:
    def __init__(self, tools: Tools, changed: Callable[[], None]) -> None:
        self.tools = tools
        self.changed = changed
        self.ready = asyncio.Event()
        self.probes: list[asyncio.subprocess.Process] = []
        self.watching: list[asyncio.Task] = []

    async def start(self) -> None:
        self.log = tempfile.NamedTemporaryFile(prefix="retryd-pod-", suffix=".log")  # noqa: SIM115 as long as the pod
        ports = [
            argument for port in ("listen", "probe-listen", "admin-listen") for argument in (f"--{port}", "127.0.0.1:0")
        ]
        self.process = await asyncio.create_subprocess_exec(
            *[self.tools.retryd, "serve", "--drain-delay", f"{DRAIN_DELAY_SECONDS}s", *ports],
            stdout=self.log,
            stderr=self.log,
        )
        self.address, probed = await self.listening("calls"), await self.listening("probe")
        for service, told in ((READINESS, self.set_ready), (LIVENESS, self.insist)):
            self.watching.append(asyncio.ensure_future(self.watch(probed, service, told)))
        self.watching.append(asyncio.ensure_future(self.watch_process()))

    async def listening(self, port: str) -> str:
        for _ in range(6000):
            if address := served_at(self.logged(), port):
                return address
            await asyncio.sleep(0.01)
        raise RuntimeError(f"a pod does not serve {port}:\n{self.logged()}")

    def logged(self) -> str:
        return Path(self.log.name).read_text()

    async def watch(self, address: str, service: str, told: Callable[[bool, str], None]) -> None:
        """Success counts at once (successThreshold 1), a failure when it has come so often in a row."""
        port = address.rsplit(":", 1)[1]
        probe = await asyncio.create_subprocess_exec(
            *[self.tools.probe, "-port", port, "-service", service, "-period", f"{PERIOD_SECONDS}s"],
            stdin=PIPE,
            stdout=PIPE,
        )
        self.probes.append(probe)
        failures = 0
        async for line in probe.stdout:
            verdict, message = line.decode().rstrip("\n").split("\t", 1)
            failures = 0 if verdict == "success" else failures + 1
            if failures in (0, FAILURES_MAX):
                told(failures == 0, message)

    async def watch_process(self) -> None:
        """The kubelet sees a container end without asking it."""
        await self.process.wait()
        self.set_ready(False, "ended")

    def set_ready(self, is_ready: bool, _message: str) -> None:
        if is_ready != self.ready.is_set():
            (self.ready.set if is_ready else self.ready.clear)()
            self.changed()

    def insist(self, is_alive: bool, message: str) -> None:
        if not is_alive and self.process.returncode is None:
            raise RuntimeError(f"the kubelet would restart a pod that is alive: {message}")

    async def terminate(self) -> None:
        """SIGTERM, and SIGKILL when the grace period is over, which is a failure of its own."""
        # The kubelet stops probing a pod that terminates.
        await self.stop_probes()
        self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), GRACE_SECONDS)
        except TimeoutError:
            self.process.kill()
            raise RuntimeError("a pod had to be killed after its grace period") from None

    async def ended(self) -> None:
        await self.process.wait()
        await self.stop_probes()

    async def stop_probes(self) -> None:
        for probe in self.probes:
            probe.stdin.close()
            await probe.wait()
        for task in self.watching[:2]:
            await task
