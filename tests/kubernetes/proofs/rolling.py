"""5: rolling restarts under calls."""

import json
import os
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from .cluster import Cluster, is_ready, name_of, until
from .kit import deploy, settled

CALLERS, CALLS_A_SECOND, RESTARTS = 4, 50, 3
POD = "callers"


def rolls(cluster: Cluster) -> str:
    """three times `rollout restart` under 200 calls a second fail no call"""
    deploy(cluster)
    names = {name_of(pod) for pod in settled(cluster)}
    address = f"{cluster.service_ip('retryd')}:50051"
    with calling(cluster, address) as callers:
        began = time.monotonic()
        for _ in range(RESTARTS):
            cluster.kubectl("rollout", "restart", "deployment/retryd")
            now = {name_of(pod) for pod in settled(cluster)}
            assert not now & names, f"not replaced: {now & names}"
            names = now
        seconds = time.monotonic() - began
        tallies = [caller.end() for caller in callers]
    calls = sum(tally["calls"] for tally in tallies)
    failed = [each for tally in tallies for each in tally["failed"]]
    assert not failed, f"{len(failed)} of {calls} calls failed, the first one: {failed[0]}"
    assert all(tally["calls"] for tally in tallies), tallies
    return (
        f"{RESTARTS} restarts, 0 of {calls} calls failed; {CALLERS} connections, {calls / seconds:.0f} calls a second"
    )


class Caller:
    def __init__(self, cluster: Cluster, address: str):
        command = cluster.command("exec", "--stdin", POD, "--", "/caller/caller", address, str(CALLS_A_SECOND))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "calling\n", "a caller had no answer"

    def end(self) -> dict:
        tally, _ = self.process.communicate(timeout=60)
        return json.loads(tally)


@contextmanager
def calling(cluster: Cluster, address: str):
    """Callers inside the cluster, copied into a pod of any image that has a shell."""
    security = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "shell",
        "image": os.environ["SHELL_IMAGE"],
        "command": ["sh", "-c", "sleep 7200"],
        "volumeMounts": [{"name": "caller", "mountPath": "/caller"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "caller", "emptyDir": {}}],
        "securityContext": security,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
    }
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": spec})
    callers = []
    try:
        until("the pod of the callers", lambda: is_ready(cluster.pod(POD)))
        program = Path(os.environ["CALLER"]).read_bytes()
        copy = "cat > /caller/caller && chmod +x /caller/caller && wc -c < /caller/caller"
        size = cluster.kubectl("exec", "--stdin", POD, "--", "sh", "-c", copy, given=program)
        assert int(size) == len(program), f"{size} of {len(program)} bytes arrived"
        for _ in range(CALLERS):
            callers.append(Caller(cluster, address))
        yield callers
    finally:
        for caller in callers:
            caller.process.kill()
            caller.process.wait()
        cluster.kubectl("delete", "pod", POD, "--wait=false")
