"""What is rendered fits the program: it starts with it, answers the probes, finds its policy and its store."""
import re
import subprocess
import tempfile
import unittest
from contextlib import contextmanager
from pathlib import Path

import kit
from pod import RETRYD, SERVING, UNKNOWN, Pod, free_port, pod

REDIS = kit.TOOLS / "bin" / "redis-server-8"
STARTUP, READINESS, LIVENESS = PROBES = ["startupProbe", "readinessProbe", "livenessProbe"]
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


class Pods(unittest.TestCase):
    def test_it_starts_answers_its_probes_and_stays_alive_in_a_drain(self):
        for name in kit.NAMES:
            with self.subTest(name), pod(name, made_by_users(), without_store()) as running:
                for probe in PROBES:
                    self.assertEqual(SERVING, running.ask(running.container[probe]["grpc"]), probe)

                running.terminate()
                self.assertEqual("NOT_SERVING", running.ask_until("NOT_SERVING", running.container[READINESS]["grpc"]))
                # Else the kubelet would end what is finishing its calls.
                self.assertEqual(SERVING, running.ask(running.container[LIVENESS]["grpc"]))

    def test_the_prober_tells_a_wrong_probe(self):
        """Else the test above could not fail."""
        with pod("helm-default", [], {}) as running:
            right = running.container[READINESS]["grpc"]
            self.assertEqual(UNKNOWN, running.ask(right | {"service": "retryd.v2.RetryService"}))
            self.assertNotEqual(SERVING, running.ask(right | {"port": 9090}))
            with self.assertRaisesRegex(AssertionError, "retryd opens only"):
                running.ask(right | {"port": 50053})

    def test_every_port_is_declared(self):
        for name in kit.NAMES:
            with self.subTest(name):
                declared = {port["containerPort"] for port in laid_out(name).container["ports"]}
                self.assertEqual(laid_out(name).opened.keys(), declared)

    def test_every_variable_is_one_of_the_program(self):
        """An unknown one would be passed over in silence."""
        known = set(re.findall(r"\[env:\s+(\w+)", kit.run(RETRYD, "serve", "--help").stdout))
        self.assertIn("RETRYD_LISTEN", known)
        for name in kit.NAMES:
            with self.subTest(name):
                self.assertEqual(set(), laid_out(name).rendered.keys() - known)

    def test_the_grace_period_is_longer_than_a_drain(self):
        for name in kit.NAMES:
            with self.subTest(name):
                laid = laid_out(name)
                drain = seconds(laid.rendered["RETRYD_DRAIN_TIMEOUT"])
                self.assertLess(seconds(laid.rendered["RETRYD_DRAIN_DELAY"]), drain)
                self.assertLess(drain, laid.spec["terminationGracePeriodSeconds"])

    def test_the_policy_is_fine_for_as_many_pods(self):
        for name in kit.NAMES:
            for policy in (found for found in kit.objects(name) if found["kind"] == "ConfigMap"):
                with self.subTest(name), tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                    file.write(policy["data"]["policy.yaml"])
                    file.flush()
                    replicas = laid_out(name).rendered.get("RETRYD_REPLICAS", 1)
                    checked = kit.run(RETRYD, "check", "--replicas", replicas, file.name)
                    self.assertEqual(0, checked.returncode, checked.stderr)

    def test_the_store_is_told_of_as_many_pods_as_there_may_be(self):
        most = {"helm-store": "9", "kustomize-store": "9", "helm-everything": "40", "helm-bare": "2"}
        told = {name: laid_out(name).rendered.get("RETRYD_REPLICAS") for name in kit.NAMES}
        self.assertEqual({name: most.get(name) for name in kit.NAMES}, told)
        for name in ["helm-store", "kustomize-store"]:
            scaled = kit.only("HorizontalPodAutoscaler", kit.objects(name))["spec"]["maxReplicas"]
            self.assertEqual(str(scaled), told[name])

    def test_it_reaches_the_store_with_the_password_of_the_secret(self):
        for name in ["helm-store", "kustomize-store"]:
            with self.subTest(name), redis("correct") as address:
                for password, answer in [("correct", SERVING), ("wrong", "NOT_SERVING")]:
                    secret = an_object("Secret", "retryd-store", {"password": f"{password}\n"})
                    with pod(name, [secret], {"redis:6379": address}) as running:
                        probe = running.container[READINESS]["grpc"] | {"service": "retryd.store"}
                        self.assertEqual(answer, running.ask_until(answer, probe))


def laid_out(name: str) -> Pod:
    """A pod to look at."""
    with tempfile.TemporaryDirectory() as folder:
        return Pod([*kit.objects(name), *made_by_users()], Path(folder), {})


def made_by_users() -> list[dict]:
    """What the renderings expect to be there."""
    policy = kit.only("ConfigMap", kit.objects("helm-default"))["data"]
    return [
        an_object("ConfigMap", "our-policy", policy),
        an_object("Secret", "retryd-store", {"password": "secret"}),
        an_object("Secret", "store", {"pass": "secret", "ca.crt": certificate_and_key()}),
        an_object("Secret", "retryd-tls", dict.fromkeys(["tls.crt", "tls.key", "ca.crt"], certificate_and_key())),
    ]


def an_object(kind: str, name: str, data: dict[str, str]) -> dict:
    return {"kind": kind, "metadata": {"name": name}, "stringData" if kind == "Secret" else "data": data}


def certificate_and_key() -> str:
    """Of one that has signed itself, in one file: whoever reads it takes what it needs."""
    made = kit.run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes", "-keyout", "/dev/stdout", "-subj", "/CN=store", "-days", "1",
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def without_store() -> dict[str, str]:
    """Nobody listens where the stores of the renderings should be."""
    return {host: f"127.0.0.1:{free_port()}" for host in ["redis:6379", "store.example.com:6380"]}


@contextmanager
def redis(password: str):
    """A Redis whose user `retryd` may do what the README asks for, and no more."""
    rights = "~retryd:* +evalsha +script|load +time +get +set +ping"
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "redis.conf")
        settings.write_text(
            f'bind 127.0.0.1\nport {port}\nsave ""\ndir {folder}\nuser default off\nuser retryd on >{password} {rights}\n'
        )
        server = subprocess.Popen([REDIS, settings], stdout=subprocess.DEVNULL)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


def seconds(duration: str) -> float:
    return sum(int(number) * SECONDS[unit] for number, unit in re.findall(r"(\d+)(ms|s|m|h)", duration))
