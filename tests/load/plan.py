"""A load profile: a configuration file of ghz, and what its [tags] promise about it."""
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ratio import Promise

# The one action that a tenant's name may have, so that it is known which call was of which tenant.
TENANT = re.compile(r"\{\{mod \.RequestNumber (\d+)\}\}")


@dataclass(frozen=True)
class Ask:
    tenant: str
    at_ms: int
    requests: int
    repeatable: bool


class Plan:
    def __init__(self, file: Path) -> None:
        its = tomllib.loads(file.read_text())
        tags = its["tags"]
        self.file = file
        self.name = file.stem
        self.about = tags["about"]
        self.promise = Promise(
            percent=int(tags["percent"]),
            interval_ms=int(tags["interval_seconds"]) * 1_000,
            floor=int(tags["floor"]),
            floor_ms=int(tags["floor_seconds"]) * 1_000,
        )
        self.repeatable = {int(entry) for entry in tags["repeatable"].split()}
        self.replicas = int(tags.get("replicas", "1"))
        self.cut_after = float(tags["cut_after_seconds"]) if "cut_after_seconds" in tags else None
        # The least accuracy that passes, where it does not hang on how busy the machine is.
        self.least = float(tags["least"]) if "least" in tags else None
        self.rate = its.get("rps")
        self.calls = its["total"]
        self.data = its["data"]

    def ask(self, number: int, at_ms: int) -> Ask:
        """What ghz sends as call `number`."""
        entry = number % len(self.data)
        data = self.data[entry]
        tenant = TENANT.sub(lambda action: str(number % int(action[1])), data["tenant"])
        if "{{" in tenant:
            raise ValueError(f"{self.file.name}: nobody can tell which call is of `{tenant}`")
        return Ask(tenant, at_ms, data["usage"]["requests"], entry in self.repeatable)
