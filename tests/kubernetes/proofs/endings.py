"""6 and 7: evictions, and the end of a pod."""

import json
import subprocess
from datetime import datetime

from .cluster import Cluster, grpcurl, name_of, until
from .kit import deploy, settled

FINALIZER = "retryd.example/proof"


def evictions(cluster: Cluster) -> str:
    """the PodDisruptionBudget stops a second eviction"""
    deploy(cluster)
    first, second, *_ = map(name_of, settled(cluster))
    until("a disruption that is allowed", lambda: allowed(cluster))
    granted = evict(cluster, first)
    assert granted.returncode == 0, f"the first eviction: {granted.stderr}"
    refused = evict(cluster, second)
    assert refused.returncode != 0, "the second eviction was granted"
    assert "disruption budget" in refused.stderr, refused.stderr
    settled(cluster)
    until("a disruption that is allowed again", lambda: allowed(cluster))
    names = {name_of(pod) for pod in cluster.pods()}
    assert second in names and first not in names, names
    return "the first one granted, the second one refused, and one allowed again with the new pod"


def allowed(cluster: Cluster) -> int:
    return cluster.get("poddisruptionbudget", "retryd")["status"].get("disruptionsAllowed", 0)


def evict(cluster: Cluster, pod: str) -> subprocess.CompletedProcess[str]:
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": cluster.namespace},
    }
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/eviction"
    return cluster.attempt("create", "--raw", path, "--filename", "-", given=json.dumps(eviction))


def ends(cluster: Cluster) -> str:
    """SIGTERM ends a pod within its grace period, though a client stays on it"""
    deploy(cluster)
    pod = settled(cluster)[0]
    name, grace = name_of(pod), pod["spec"]["terminationGracePeriodSeconds"]
    finalizers(cluster, name, [FINALIZER])
    try:
        with cluster.forward(name) as address, watching(address) as stream:
            cluster.kubectl("delete", "pod", name, "--wait=false")
            # To be read now: when the containers have ended, the kubelet deletes again, with a grace period of 0.
            latest = last_moment(cluster.pod(name), grace)
            assert stream.poll() is None, "the stream ended before the drain did"
            # What the pod ended with stays to be read as long as the finalizer does.
            ended = until("the end of the container", lambda: terminated(cluster, name), seconds=3 * grace)
    finally:
        finalizers(cluster, name, None)
    left = (latest - moment(ended["finishedAt"])).total_seconds()
    assert ended["exitCode"] == 0, f"the container ended with {ended}"
    assert left >= 0, f"the container ended {-left} s after its grace period of {grace} s"
    settled(cluster)
    return f"exit code 0 after {grace - left:.0f} of {grace} s, with a stream open"


def last_moment(pod: dict, grace: int) -> datetime:
    """That of the request and the grace period, added up."""
    metadata = pod["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == grace, metadata
    return moment(metadata["deletionTimestamp"])


def terminated(cluster: Cluster, name: str) -> dict:
    [status] = cluster.pod(name)["status"]["containerStatuses"]
    return status["state"].get("terminated", {})


def finalizers(cluster: Cluster, name: str, wanted: list[str] | None) -> None:
    cluster.kubectl("patch", "pod", name, "--type=merge", "--patch", json.dumps({"metadata": {"finalizers": wanted}}))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


class watching:
    """A stream that its client never ends."""

    def __init__(self, address: str):
        grpcurl(address, "BudgetService/GetBudget", {"tenant": "ends", "operation": "proof"})
        watch = json.dumps({"tenant": "ends", "operation": "proof"})
        self.command = ["grpcurl", "-plaintext", "-d", watch, address, "retryd.v1.BudgetService/WatchBudget"]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout.readline(), "the stream has no first state"
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
