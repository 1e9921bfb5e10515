"""9: a ConfigMap that changes under running pods."""

from contextlib import ExitStack

from .cluster import Cluster, ask, grpcurl, name_of, until
from .kit import deploy, settled
from .probes import BROKEN
from .sharing import sample

POLICY = "version: 1\npolicies: [{name: %s}]\n"
SUCCESSFUL = "retryd_policy_last_reload_successful "


def reloads(cluster: Cluster) -> str:
    """another policy takes hold in each pod without a restart, a refused one in none"""
    deploy(cluster, policy=POLICY % "before")
    pods = settled(cluster)
    with ExitStack() as forwards:
        addresses = [forwards.enter_context(cluster.forward(name_of(pod))) for pod in pods]
        admins = [forwards.enter_context(cluster.forward(name_of(pod), 9090)) for pod in pods]
        assert decided_by(addresses) == {"before"}, decided_by(addresses)

        deploy(cluster, policy=POLICY % "after")
        until("the other policy in each pod", lambda: decided_by(addresses) == {"after"})

        deploy(cluster, policy=BROKEN)
        until("a refusal in each pod", lambda: all(sample(admin, SUCCESSFUL) == 0 for admin in admins))
        assert decided_by(addresses) == {"after"}, decided_by(addresses)

        deploy(cluster, policy=POLICY % "mended")
        until("the mended policy in each pod", lambda: decided_by(addresses) == {"mended"})
        assert all(sample(admin, SUCCESSFUL) == 1 for admin in admins)
    assert containers(settled(cluster)) == containers(pods), "a pod was restarted or replaced"
    return f"{len(pods)} pods, the same containers: another policy decided, a refused one did not, a mended one did"


def decided_by(addresses: list[str]) -> set[str]:
    """The policies that decide now, over all pods."""
    return {grpcurl(address, "RetryService/Decide", ask("reloads"))[0]["policy"] for address in addresses}


def containers(pods: list[dict]) -> dict[str, str]:
    return {name_of(pod): pod["status"]["containerStatuses"][0]["containerID"] for pod in pods}
