"""8: three replicas share one Redis in the cluster."""

import os
import secrets
import time
from contextlib import ExitStack
from urllib.request import urlopen

from .cluster import Cluster, ask, grpcurl, is_ready, name_of, until
from .kit import PODS, deploy, settled

FLOOR, ROUNDS, ASKS_A_ROUND, TENANT = 90, 30, 10, "shares"
POLICY = f"""version: 1
budgets:
  - name: shared
    scope: tenant
    on_store_loss: deny
    ratio: {{percent: 0, min_retry_rate: {{count: {FLOOR}, interval: 1h}}}}
policies:
  - {{name: default, budgets: [shared]}}
"""


def shares(cluster: Cluster) -> str:
    """three replicas that share one Redis grant what one would"""
    redis(cluster)
    # By its address: a cluster need not have a DNS.
    deploy(cluster, policy=POLICY, store=f"redis://{cluster.service_ip('redis')}:6379")
    pods = sorted(map(name_of, settled(cluster)))
    began = time.monotonic()
    with ExitStack() as forwards:
        addresses = [forwards.enter_context(cluster.forward(pod)) for pod in pods]
        admins = [forwards.enter_context(cluster.forward(pod, 9090)) for pod in pods]
        until("all replicas at the store", lambda: all(sample(admin, "retryd_store_up ") == 1 for admin in admins), 60)
        granted = [0] * len(pods)
        for _ in range(ROUNDS):
            for place, address in enumerate(addresses):
                granted[place] += asked(address)
        total = sum(granted)
        hours = (time.monotonic() - began) / 3600
        bound = FLOOR * (1 + hours) + len(pods)
        assert total <= bound, f"{granted} granted, more than the {bound:.1f} that all together may"
        assert total >= 0.8 * FLOOR > FLOOR / PODS, f"{granted} granted, of a budget of {FLOOR}"
        retries = [sample(admin, 'retryd_decisions_total{verdict="RETRY"') for admin in admins]
        assert retries == granted, f"{granted} were granted, the metrics say {retries}"
        left = [listed_left(address) for address in addresses]
        assert all(each < FLOOR / PODS for each in left), f"left, as the replicas see it: {left}"
    asks = ROUNDS * ASKS_A_ROUND * len(pods)
    return f"{asks} asks, {' + '.join(map(str, granted))} = {total} granted of {FLOOR}; metrics agree; left: {left}"


def asked(address: str) -> int:
    """How many of a few asks were granted."""
    answers = grpcurl(address, "RetryService/DecideStream", *[ask(TENANT)] * ASKS_A_ROUND)
    decisions = [answer["decision"] for answer in answers]
    assert len(decisions) == ASKS_A_ROUND and not any(each.get("degraded") for each in decisions), decisions
    return sum(each["verdict"] == "VERDICT_RETRY" for each in decisions)


def listed_left(address: str) -> int:
    """What ListBudgets says is left of the tenant's budget: the replica's part and what the pool had."""
    [answer] = grpcurl(address, "BudgetService/ListBudgets", {})
    [found] = [each["budget"] for each in answer["budgets"] if each["tenant"] == TENANT]
    return int(found.get("retriesAvailable", 0))


def sample(admin: str, name: str) -> int:
    """The sum of the samples that begin like this."""
    with urlopen(f"http://{admin}/metrics", timeout=30) as response:
        lines = response.read().decode().splitlines()
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith(name))


def redis(cluster: Cluster) -> None:
    """One without a disk, and the Secret that the kit wants."""
    password = secrets.token_hex(16)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "retryd-store"},
        "stringData": {"password": password},
    }
    container = {
        "name": "redis",
        "image": os.environ["REDIS_IMAGE"],
        "command": ["redis-server", "--save", "", "--dir", "/tmp", "--requirepass", "$(PASSWORD)"],
        "env": [{"name": "PASSWORD", "value": password}],
        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "redis", "labels": {"app": "redis"}},
        "spec": {"containers": [container], "securityContext": security, "automountServiceAccountToken": False},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "redis"},
        "spec": {"selector": {"app": "redis"}, "ports": [{"port": 6379}]},
    }
    cluster.apply(secret, service, pod)
    until("a Redis that is ready", lambda: is_ready(cluster.pod("redis")))
