"""Plays one load profile with ghz, and prints what came of it. Usage: play.py RETRYD TOOLS FOLDER PROFILE

Fails when more was granted than the budget guarantees. A profile that says `least` fails on errors, too, and when
less was granted than that part of what callers were entitled to. Nothing fails on time.
"""
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from plan import Plan
from services import Retryd, Store, Way
from table import Outcome, Run

HERE = Path(__file__).resolve().parent


def main() -> int:
    binary, tools, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    plan = Plan(HERE / "profiles" / f"{sys.argv[4]}.toml")
    folder.mkdir(parents=True, exist_ok=True)
    # Whoever ends this ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    outcome = Outcome(plan, play(plan, binary, tools, folder))
    (folder / "table.txt").write_text(outcome.table())
    print(outcome.table())
    faults = outcome.faults()
    for fault in faults:
        print(f"FAILED: {fault}", file=sys.stderr)
    return 1 if faults else 0


def play(plan: Plan, binary: str, tools: Path, folder: Path) -> Run:
    with ExitStack() as all_of_it:
        store, way = [], None
        if 1 < plan.replicas:
            way = Way(all_of_it.enter_context(Store(folder / "store.log")).port)
            store = ["--store", f"redis://127.0.0.1:{way.port}", "--replicas", str(plan.replicas)]
        replicas = []
        for number in range(plan.replicas):
            log = folder / f"retryd-{number}.log"
            replicas.append(all_of_it.enter_context(Retryd(binary, HERE / "policy.yaml", store, log)))
        if store:
            for replica in replicas:
                replica.until(lambda replica=replica: replica.metrics()["retryd_store_up"])

        callers = []
        for number, replica in enumerate(replicas):
            report = folder / f"ghz-{number}.json"
            report.unlink(missing_ok=True)
            command = [str(tools / "ghz"), "--config", str(plan.file), "-O", "json", "-o", str(report), replica.calls]
            callers.append((report, all_of_it.enter_context(Caller(command))))
        if plan.cut_after is not None:
            time.sleep(plan.cut_after)
            way.cut()
        cpu = {"ghz": sum(caller.end() for _, caller in callers)}
        cpu["retryd"] = sum(replica.cpu_seconds() for replica in replicas)
        outages = [outage for replica in replicas for outage in replica.outages()]
        metrics = sum((replica.metrics() for replica in replicas), Counter())
        reports = [json.loads(report.read_text()) for report, _ in callers]
    for report, _ in callers:
        with report.open() as json_report, report.with_suffix(".html").open("w") as html:
            subprocess.run([tools / "ghz-html"], stdin=json_report, stdout=html, check=True)
    return Run(reports, metrics, cpu, outages)


class Caller:
    """One ghz. It says little unless it cannot work at all."""

    def __init__(self, command: list[str]) -> None:
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.child.kill()
        self.child.wait()

    def end(self) -> float:
        """Waits for it, and tells the seconds of processor time that it took."""
        _, status, usage = os.wait4(self.child.pid, 0)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        if self.child.returncode != 0:
            raise RuntimeError(f"ghz ended with {self.child.returncode}")
        return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
