"""1: what the kit renders to, judged by the API server."""

import sys

from .cluster import Cluster, listed, name_of
from .kit import ROOT

sys.path.insert(0, str(ROOT / "tests" / "deploy"))
import kit as renderings  # noqa: E402


def accepted(cluster: Cluster) -> str:
    """each rendering is accepted, and read back as it was sent"""
    served = set(cluster.kubectl("api-resources", "--no-headers", "--output", "name").split())
    fields, objects, unknown = 0, 0, set()
    for name in renderings.NAMES:
        sent = []
        for each in renderings.objects(name):
            group = each["apiVersion"].rpartition("/")[0]
            if each["kind"] == "ServiceMonitor" and f"servicemonitors.{group}" not in served:
                unknown.add(each["kind"])
            else:
                sent.append(each)
        fields += in_a_namespace(Cluster(f"{cluster.namespace}-{name}"), sent)
        objects += len(sent)
    without = f", without {', '.join(sorted(unknown))}, which is not served here" if unknown else ""
    return f"{len(renderings.NAMES)} renderings, {objects} objects, {fields} fields{without}"


def in_a_namespace(cluster: Cluster, sent: list[dict]) -> int:
    """How many fields were compared."""
    text = listed(sent)
    cluster.kubectl("create", "namespace", cluster.namespace)
    try:
        cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename", "-", given=text)
        cluster.kubectl("apply", "--validate=strict", "--filename", "-", given=text)
        read = cluster.get("--filename", "-", given=text)["items"]
        found = {(each["kind"], name_of(each)): each for each in read}
        return sum(
            compared(each, found[each["kind"], name_of(each)], f"{each['kind']} {name_of(each)}") for each in sent
        )
    finally:
        cluster.kubectl("delete", "namespace", cluster.namespace, "--wait=false")


def compared(sent, read, where: str) -> int:
    if isinstance(sent, dict):
        assert isinstance(read, dict), f"{where}: {sent} was sent, {read} was read"
        return sum(compared(value, read.get(key, left_out(value)), f"{where}.{key}") for key, value in sent.items())
    if isinstance(sent, list):
        assert isinstance(read, list) and len(read) == len(sent), f"{where}: {sent} was sent, {read} was read"
        return sum(compared(*pair, f"{where}[{place}]") for place, pair in enumerate(zip(sent, read, strict=True)))
    assert sent == read, f"{where}: {sent!r} was sent, {read!r} was read"
    return 1


def left_out(sent):
    """What it means that the API does not show a field: it leaves out empty lists and zeros, where they say nothing."""
    return sent if sent == [] or type(sent) is int and sent == 0 else None
