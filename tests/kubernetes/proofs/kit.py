"""The kustomize base as an overlay of a user has it: an image, a policy, and what a proof changes."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

from .cluster import Cluster, is_ready, until

ROOT = Path(__file__).resolve().parents[3]
KUSTOMIZE = ROOT / "deploy" / "kustomize"
POLICY = (KUSTOMIZE / "base" / "policy.yaml").read_text()
PODS = 3


def deploy(
    cluster: Cluster,
    *,
    policy: str = POLICY,
    rolls: bool = False,
    env: dict[str, str] | None = None,
    grace: int = 30,
    store: str = "",
) -> None:
    """Returns when the cluster has taken it, and not when the pods are there. `rolls`: another policy is a rollout."""
    variables = dict(env or {})
    if store:
        variables["RETRYD_STORE"] = store
    container = {
        "name": "retryd",
        "image": os.environ["IMAGE"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
    }
    annotations = {"checksum/policy": hashlib.sha256(policy.encode()).hexdigest()} if rolls else {}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "retryd"},
        "spec": {
            # It is for clients that ask the DNS; those here have the ClusterIP. To be faster is harder.
            "minReadySeconds": 0,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"terminationGracePeriodSeconds": grace, "containers": [container]},
            },
        },
    }
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        overlay = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": cluster.namespace,
            "resources": [os.path.relpath(KUSTOMIZE / "base", folder)],
            "components": [os.path.relpath(KUSTOMIZE / "components" / "store", folder)] if store else [],
            "configMapGenerator": [{"name": "retryd-policy", "behavior": "replace", "files": ["policy.yaml"]}],
            "patches": [{"patch": json.dumps(deployment)}],
        }
        (folder / "policy.yaml").write_text(policy)
        (folder / "kustomization.yaml").write_text(json.dumps(overlay))
        cluster.kubectl("apply", "--kustomize", str(folder))


def settled(cluster: Cluster) -> list[dict]:
    """The pods, when the rollout is complete, the autoscaler has had its say, and old ones are gone."""
    cluster.kubectl("rollout", "status", "deployment/retryd", "--timeout", "300s")

    def calm() -> list[dict]:
        pods = cluster.all_pods()
        stay = len(pods) >= PODS and all(is_ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in pods)
        return pods if stay else []

    return until("a calm Deployment of three ready pods", calm)
