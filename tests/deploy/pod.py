"""One pod of a rendering, run on this machine as the kubelet would run it: its arguments, variables, mounts and probes.

Only ports are others, since those may be taken here: each that a variable opens is replaced by a free one.
"""
import re
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import kit

RETRYD = kit.ROOT / "target" / "debug" / "retryd"
PROBER = kit.TOOLS / "bin" / "grpc-health-probe"

SERVING = "SERVING"
# By the exit code of the prober.
ANSWERS = {0: SERVING, 2: "no connection", 4: "NOT_SERVING"}
UNKNOWN = "unknown service"
OPENS = re.compile(r"^(0\.0\.0\.0|\[::\]):(?P<port>\d+)$")


class Pod:
    def __init__(self, objects: list[dict], folder: Path, hosts: dict[str, str]):
        """`objects` has what the pod refers to; `hosts` tells which HOST:PORT of a variable is where on this machine."""
        self.spec = kit.only("Deployment", objects)["spec"]["template"]["spec"]
        [self.container] = self.spec["containers"]
        self._folder = folder
        self.rendered = {each["name"]: each["value"] for each in self.container["env"]}
        self.opened = {int(found["port"]): free_port() for found in map(OPENS.match, self.rendered.values()) if found}
        self._variables = {name: self._here(value, hosts) for name, value in self.rendered.items()}
        self._mount(objects)

    def _here(self, value: str, hosts: dict[str, str]) -> str:
        if found := OPENS.match(value):
            return f"{found[1]}:{self.opened[int(found['port'])]}"
        for name, address in hosts.items():
            value = value.replace(name, address)
        return f"{self._folder}{value}" if value.startswith("/") else value

    def _mount(self, objects: list[dict]) -> None:
        volumes = {volume["name"]: volume for volume in self.spec["volumes"]}
        for mount in self.container["volumeMounts"]:
            folder = Path(f"{self._folder}{mount['mountPath']}")
            folder.mkdir(parents=True)
            for name, content in content_of(volumes[mount["name"]], objects).items():
                (folder / name).write_text(content)

    @contextmanager
    def running(self):
        log = self._folder / "log"
        with log.open("w") as stderr:
            # The entry point of the image, and no variable of this process.
            command = [RETRYD, *self.container["args"]]
            self.process = subprocess.Popen(command, env=self._variables, stderr=stderr, stdout=stderr)
        try:
            self._wait_for_start(log)
            yield self
        finally:
            self.process.kill()
            self.process.wait()

    def _wait_for_start(self, log: Path) -> None:
        probe = self.container["startupProbe"]
        for _ in range(probe["failureThreshold"]):
            if self.process.poll() is not None:
                raise AssertionError(f"retryd ended with {self.process.returncode}: {log.read_text()}")
            if (answer := self.ask(probe["grpc"])) == SERVING:
                return
            if answer == UNKNOWN:
                break
            time.sleep(min(0.2, probe["periodSeconds"]))
        raise AssertionError(f"{probe['grpc']} gets `{answer}`: {log.read_text()}")

    def ask(self, probe: dict) -> str:
        """What the kubelet would hear."""
        port = self.opened.get(probe["port"])
        if port is None:
            raise AssertionError(f"{probe}: retryd opens only {sorted(self.opened)}")
        asked = kit.run(PROBER, "-addr", f"127.0.0.1:{port}", "-service", probe["service"], "-rpc-timeout", "2s")
        if asked.returncode in ANSWERS:
            return ANSWERS[asked.returncode]
        return UNKNOWN if "NotFound" in asked.stderr else asked.stderr

    def ask_until(self, wanted: str, probe: dict) -> str:
        """The answer that is wanted, or another one after a while."""
        for _ in range(50):
            if (answer := self.ask(probe)) == wanted:
                break
            time.sleep(0.1)
        return answer

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


@contextmanager
def pod(name: str, more: list[dict], hosts: dict[str, str]):
    """A running pod of a rendering, where `more` are objects that its user has made."""
    with tempfile.TemporaryDirectory() as folder:
        with Pod([*kit.objects(name), *more], Path(folder), hosts).running() as running:
            yield running


def content_of(volume: dict, objects: list[dict]) -> dict[str, str]:
    if "configMap" in volume:
        kind, name = "ConfigMap", volume["configMap"]["name"]
    else:
        kind, name = "Secret", volume["secret"]["secretName"]
    found = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    assert found, f"the pod wants the {kind} `{name}`, which is not there"
    return found[0].get("data") or found[0]["stringData"]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
