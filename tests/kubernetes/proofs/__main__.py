"""Runs the proofs one after the other and prints what was seen."""

import argparse
import os
import sys
import time
import traceback

from . import endings, manifests, probes, reloading, rolling, sharing
from .cluster import Cluster

PROOFS = {
    "accepted": manifests.accepted,
    "ready": probes.ready,
    "broken-policy": probes.broken_policy,
    "leaves": probes.leaves,
    "rolls": rolling.rolls,
    "evictions": endings.evictions,
    "ends": endings.ends,
    "shares": sharing.shares,
    "reloads": reloading.reloads,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/kubernetes/run", description=__doc__)
    parser.add_argument("proofs", nargs="*", metavar="PROOF", help=", ".join(PROOFS))
    chosen = parser.parse_args().proofs or list(PROOFS)
    if unknown := set(chosen) - set(PROOFS):
        parser.error(f"no such proof: {', '.join(sorted(unknown))}")

    cluster = Cluster(f"retryd-proof-{os.getpid()}")
    cluster.kubectl("create", "namespace", cluster.namespace)
    try:
        rows = [proven(cluster, name) for name in chosen]
    finally:
        cluster.kubectl("delete", "namespace", cluster.namespace, "--timeout=300s")
    nodes = cluster.get("nodes")["items"]
    versions = sorted({node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes})
    print(f"\nKubernetes {', '.join(versions)}, {len(nodes)} node(s), image {os.environ['IMAGE']}\n")
    print("| proof | | seconds | what was seen |\n|---|---|---|---|")
    for row in rows:
        print("| {} | {} | {:.0f} | {} |".format(*row))
    if failed := [row[0] for row in rows if row[1] != "ok"]:
        sys.exit(f"failed: {', '.join(failed)}")


def proven(cluster: Cluster, name: str) -> tuple[str, str, float, str]:
    proof = PROOFS[name]
    print(f"{name}: {proof.__doc__}", flush=True)
    began, outcome = time.monotonic(), "ok"
    try:
        seen = proof(cluster)
    except Exception as failure:  # Whatever it is, the others go on.
        if not isinstance(failure, AssertionError):
            traceback.print_exc()
        outcome, seen = "FAILED", " ".join(str(failure).split())[:300]
        print(
            cluster.attempt("get", "pods,endpointslices,poddisruptionbudgets", "--output", "wide").stdout,
            file=sys.stderr,
        )
        print(cluster.attempt("get", "events", "--sort-by", ".lastTimestamp").stdout[-3000:], file=sys.stderr)
    seconds = time.monotonic() - began
    print(f"  {outcome} after {seconds:.0f} s: {seen}", flush=True)
    return name, outcome, seconds, seen


if __name__ == "__main__":
    main()
