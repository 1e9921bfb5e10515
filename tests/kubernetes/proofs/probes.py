"""2, 3 and 4: what the kubelet's probes do to pods and endpoints."""

import os
import time

from .cluster import Cluster, ask, grpcurl, is_ready, name_of, until
from .kit import PODS, deploy, settled

# How long a rollout that must not go on is watched.
WATCHED_SECONDS = 20
BROKEN = "version: 1\npolicies: [{name: default, budgets: [a-budget-that-is-not-there]}]\n"


def ready(cluster: Cluster) -> str:
    """pods become Ready through the gRPC probes"""
    deploy(cluster)
    pods = settled(cluster)
    for pod in pods:
        [container], [status] = pod["spec"]["containers"], pod["status"]["containerStatuses"]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["grpc"]["service"], f"{name_of(pod)}: {probe} is {container[probe]}"
        assert status["started"] and status["ready"] and status["restartCount"] == 0, f"{name_of(pod)}: {status}"
    serving = cluster.endpoints()
    assert all(serving[name_of(pod)]["ready"] for pod in pods), f"endpoints: {serving}"
    never_ready(cluster, pods[0])
    return f"{len(pods)} pods, no restarts; with a service name that is not served a pod stays unready"


def never_ready(cluster: Cluster, like: dict) -> None:
    """The control: the same pod whose probe asks for another service."""
    spec = {key: like["spec"][key] for key in ("containers", "securityContext", "volumes", "serviceAccountName")}
    [container] = spec["containers"]
    container["readinessProbe"]["grpc"]["service"] = "retryd.v1.NoService"
    del container["startupProbe"]
    spec["automountServiceAccountToken"] = False
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "control"}, "spec": spec}
    cluster.apply(pod)
    try:
        until("an event about the control's probe", lambda: unhealthy(cluster, "control"))
        assert not is_ready(cluster.pod("control")), "a pod is ready whose service is not served"
    finally:
        cluster.kubectl("delete", "pod", "control", "--wait=false")


def unhealthy(cluster: Cluster, pod: str) -> bool:
    """The server was asked for a service, and knows no such one: it is not that nobody listens yet."""
    found = cluster.get("events", "--field-selector", f"involvedObject.name={pod},reason=Unhealthy")["items"]
    return any("NotFound" in event["message"] for event in found)


def broken_policy(cluster: Cluster) -> str:
    """a broken policy keeps a new pod unready, and the rollout waits"""
    deploy(cluster, rolls=True)
    old = {name_of(pod) for pod in settled(cluster)}
    deploy(cluster, policy=BROKEN, rolls=True)
    try:
        refused = until("the end of a new pod's process", lambda: ended_new_pod(cluster, old))
        log = cluster.kubectl("logs", refused, "--previous")
        assert "a-budget-that-is-not-there" in log, f"the log of {refused}: {log}"
        end = time.monotonic() + WATCHED_SECONDS
        looks = 0
        while time.monotonic() < end:
            pods = cluster.pods()
            ready_pods = {name_of(pod) for pod in pods if is_ready(pod)}
            serving = {name for name, conditions in cluster.endpoints().items() if conditions["ready"]}
            assert ready_pods == serving == old, f"old: {old}, ready: {ready_pods}, endpoints: {serving}"
            assert len(pods) == len(old) + 1, f"{len(pods)} pods"
            looks += 1
            time.sleep(1)
        for name in old:
            with cluster.forward(name) as address:
                [answer] = grpcurl(address, "RetryService/Decide", ask("broken-policy"))
                assert "verdict" in answer, answer
    finally:
        deploy(cluster, rolls=True)
    settled(cluster)
    return f"{looks} looks in {WATCHED_SECONDS} s: 1 new pod unready, {len(old)} old ones ready, listed and answering"


def ended_new_pod(cluster: Cluster, old: set[str]) -> str:
    """A new pod that was started again after its process had failed."""
    for pod in cluster.pods():
        if name_of(pod) in old:
            continue
        assert not is_ready(pod), f"{name_of(pod)} is ready"
        for status in pod["status"].get("containerStatuses", []):
            if status["restartCount"] and status["lastState"].get("terminated", {}).get("exitCode"):
                return name_of(pod)
    return ""


def leaves(cluster: Cluster) -> str:
    """NOT_SERVING leaves the EndpointSlice while the process answers"""
    deploy(cluster, env={"RETRYD_DRAIN_DELAY": "40s", "RETRYD_DRAIN_TIMEOUT": "55s"}, grace=60)
    pod = settled(cluster)[0]
    name, [before] = name_of(pod), pod["status"]["containerStatuses"]
    assert cluster.endpoints()[name]["ready"]
    with cluster.forward(name) as address:
        # The pod is not deleted, which would take it out by itself: only the probe can tell the cluster.
        signal = ("--", "sh", "-c", "kill -TERM 1")
        image = f"--image={os.environ['SHELL_IMAGE']}"
        cluster.kubectl("debug", f"pod/{name}", image, "--target=retryd", "--profile=restricted", *signal)
        began = time.monotonic()
        until("an endpoint that is not ready", lambda: not cluster.endpoints()[name]["ready"])
        left_after = time.monotonic() - began
        [answer] = grpcurl(address, "RetryService/Decide", ask("leaves"))
        assert "verdict" in answer, answer
        after = cluster.pod(name)
        [status] = after["status"]["containerStatuses"]
        assert status["containerID"] == before["containerID"] and "running" in status["state"], status
        assert "deletionTimestamp" not in after["metadata"]
    back = until("the endpoint, with another process", lambda: back_again(cluster, name, before))
    assert back["exitCode"] == 0, back
    assert len(cluster.pods()) >= PODS
    return f"not ready {left_after:.1f} s after SIGTERM, Decide answered; back when started anew"


def back_again(cluster: Cluster, name: str, before: dict) -> dict:
    [status] = cluster.pod(name)["status"]["containerStatuses"]
    again = status["containerID"] != before["containerID"] and status["ready"] and cluster.endpoints()[name]["ready"]
    return status["lastState"]["terminated"] if again else {}
