"""A namespace of a real cluster, seen through kubectl."""

import json
import subprocess
import time
from contextlib import contextmanager

SELECTOR = "app.kubernetes.io/name=retryd"
# A cluster may be busy. Nothing is proven by how long it takes.
PATIENCE = 300


class Cluster:
    def __init__(self, namespace: str):
        self.namespace = namespace

    def kubectl(self, *arguments: str, given: str | bytes | None = None) -> str:
        asked = self.attempt(*arguments, given=given)
        assert asked.returncode == 0, f"kubectl {' '.join(arguments)}: {asked.stderr.strip()}"
        return asked.stdout

    def attempt(self, *arguments: str, given: str | bytes | None = None) -> subprocess.CompletedProcess[str]:
        given = given.encode() if isinstance(given, str) else given
        asked = subprocess.run(self.command(*arguments), input=given, capture_output=True, timeout=PATIENCE + 60)
        return subprocess.CompletedProcess(asked.args, asked.returncode, asked.stdout.decode(), asked.stderr.decode())

    def command(self, *arguments: str) -> list[str]:
        return ["kubectl", "--namespace", self.namespace, *arguments]

    def get(self, *arguments: str, given: str | None = None) -> dict:
        return json.loads(self.kubectl("get", "--output", "json", *arguments, given=given))

    def apply(self, *objects: dict) -> None:
        self.kubectl("apply", "--filename", "-", given=listed(objects))

    def pods(self) -> list[dict]:
        """Those that are not told to stop."""
        return [pod for pod in self.all_pods() if "deletionTimestamp" not in pod["metadata"]]

    def all_pods(self) -> list[dict]:
        return self.get("pods", "--selector", SELECTOR)["items"]

    def pod(self, name: str) -> dict:
        return self.get("pod", name)

    def endpoints(self) -> dict[str, dict]:
        """What the EndpointSlices of the ClusterIP say about each pod."""
        slices = self.get("endpointslices", "--selector", "kubernetes.io/service-name=retryd")["items"]
        listed = [endpoint for each in slices for endpoint in each.get("endpoints") or []]
        return {endpoint["targetRef"]["name"]: endpoint["conditions"] for endpoint in listed}

    def service_ip(self, name: str) -> str:
        address = self.get("service", name)["spec"]["clusterIP"]
        return f"[{address}]" if ":" in address else address

    @contextmanager
    def forward(self, pod: str, port: int = 50051):
        """A way to this pod and no other, past every Service and NetworkPolicy. Gives HOST:PORT on this side."""
        command = self.command("port-forward", "--address", "127.0.0.1", f"pod/{pod}", f":{port}")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as forward:
            try:
                line = forward.stdout.readline()
                assert line.startswith("Forwarding from "), f"port-forward to {pod}: {line}"
                yield line.split()[2]
            finally:
                forward.terminate()


def listed(objects) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def name_of(thing: dict) -> str:
    return thing["metadata"]["name"]


def is_ready(pod: dict) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


def until(what: str, condition, seconds: float = PATIENCE, pause: float = 0.3):
    """The first answer that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(pause)
    return found


def grpcurl(address: str, method: str, *messages: dict) -> list[dict]:
    """All answers to these messages; streams them where the method does."""
    command = ["grpcurl", "-plaintext", "-max-time", "30", "-d", "@", address, f"retryd.v1.{method}"]
    asked = subprocess.run(
        command, input="\n".join(map(json.dumps, messages)), capture_output=True, text=True, timeout=60
    )
    assert asked.returncode == 0, f"{method} at {address}: {asked.stderr.strip()}"
    decoder, answers, rest = json.JSONDecoder(), [], asked.stdout.lstrip()
    while rest:
        answer, end = decoder.raw_decode(rest)
        answers.append(answer)
        rest = rest[end:].lstrip()
    return answers


def ask(tenant: str) -> dict:
    return {
        "tenant": tenant,
        "operation": "proof",
        "attempts_made": 1,
        "body_replayable": True,
        "idempotency": {"declared": True},
        "failure": {"grpc_code": 14},
    }
