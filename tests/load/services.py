"""Real processes on free loopback ports: replicas of retryd, a store, and a way to it that can be cut."""
import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

from calls import moment

# Long enough for a busy machine; nothing that works takes so long.
SOON = 60
# For so many seconds a replica may be without the store before it says so.
UNNOTICED = 1.0


class Process:
    """A child whose output goes to a file; it ends with the `with` block."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("w") as output:
            self.child = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.child.terminate()
        try:
            self.child.wait(SOON)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def cpu_seconds(self) -> float:
        after_its_name = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_its_name[11]) + int(after_its_name[12])) / os.sysconf("SC_CLK_TCK")

    def until(self, look):
        """What `look` returns as soon as it is something."""
        end = time.monotonic() + SOON
        while time.monotonic() < end and self.child.poll() is None:
            if found := look():
                return found
            time.sleep(0.02)
        raise RuntimeError(f"{self.child.args[0]} does not start:\n{self.log.read_text()}")


class Retryd(Process):
    def __init__(self, binary: str, policy: Path, store: list[str], log: Path) -> None:
        listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--drain-delay", "0s"]
        super().__init__([binary, "serve", "--policy", str(policy), *listen, *store], log)
        try:
            self.calls = self.until(lambda: self._listening("calls"))
            self.admin = self.until(lambda: self._listening("admin"))
        except RuntimeError:
            self.__exit__()
            raise

    def _entries(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("}\n")]

    def _listening(self, port: str) -> str | None:
        its = (entry for entry in self._entries() if entry["message"] == "listening" and entry["port"] == port)
        return next((entry["listen"] for entry in its), None)

    def outages(self) -> list[float]:
        """For how many seconds each it was without the store until now: it logs when that begins and when it ends."""
        found, since = [], None
        for entry in self._entries():
            if entry["message"].startswith("the store is lost"):
                since = moment(entry["timestamp"]) - UNNOTICED
            elif entry["message"] == "the store answers" and since is not None:
                found.append(moment(entry["timestamp"]) - since)
                since = None
        return found if since is None else [*found, time.time() - since]

    def metrics(self) -> Counter:
        with urllib.request.urlopen(f"http://{self.admin}/metrics", timeout=SOON) as page:
            text = page.read().decode()
        return Counter({name: int(value) for name, value in re.findall(r"^(\w+(?:\{.*\})?) (\d+)$", text, re.M)})


class Store(Process):
    def __init__(self, log: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        super().__init__(["redis-server", *options], log)
        try:
            self.until(lambda: "Ready to accept connections" in log.read_text())
        except RuntimeError:
            self.__exit__()
            raise


class Way:
    """A way to the store. Once it is cut, it still accepts connections and takes what comes, and nothing comes back."""

    def __init__(self, port: int) -> None:
        self.far = port
        self.is_cut = False
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self.is_cut = True

    def _accept(self) -> None:
        while True:
            near, _ = self.server.accept()
            far = socket.create_connection(("127.0.0.1", self.far))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(1 << 16):
                if not self.is_cut:
                    other.sendall(data)
        except OSError:
            pass
        if not self.is_cut:
            other.close()
