"""What every rendering must say of its pods, whatever its values are."""
import unittest

import kit

POD = {
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}
CONTAINER = {
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    },
}
# Would widen what the pod may reach, or take the place of what the image says.
FORBIDDEN_OF_POD = {"hostNetwork", "hostPID", "hostIPC", "hostUsers", "shareProcessNamespace", "initContainers"}
FORBIDDEN_OF_CONTAINER = {"command", "envFrom", "lifecycle"}


class Hardening(unittest.TestCase):
    def each(self):
        for name in kit.NAMES:
            deployment = kit.only("Deployment", kit.objects(name))
            pod = deployment["spec"]["template"]["spec"]
            [container] = pod["containers"]
            yield name, deployment["spec"], pod, container

    def test_pods_may_do_nothing_but_their_work(self):
        for where, _, pod, container in self.each():
            with self.subTest(where):
                self.assertEqual(POD, {key: pod.get(key) for key in POD})
                self.assertEqual(CONTAINER, {key: container.get(key) for key in CONTAINER})
                self.assertEqual(set(), FORBIDDEN_OF_POD & pod.keys())
                self.assertEqual(set(), FORBIDDEN_OF_CONTAINER & container.keys())

    def test_mounts_are_read_only_folders(self):
        for where, _, pod, container in self.each():
            with self.subTest(where):
                for mount in container["volumeMounts"]:
                    self.assertTrue(mount["readOnly"])
                    # A file that is mounted by itself never changes.
                    self.assertNotIn("subPath", mount)
                for volume in pod["volumes"]:
                    self.assertEqual(0o440 if "secret" in volume else None, volume.get("secret", {}).get("defaultMode"))

    def test_no_secret_is_a_variable(self):
        for where, _, _, container in self.each():
            with self.subTest(where):
                self.assertEqual([], [each["name"] for each in container["env"] if "valueFrom" in each])
                self.assertNotIn("RETRYD_STORE_PASSWORD", [each["name"] for each in container["env"]])

    def test_memory_is_limited_and_the_processor_is_not(self):
        for where, _, _, container in self.each():
            with self.subTest(where):
                self.assertEqual({"cpu", "memory"}, container["resources"]["requests"].keys())
                self.assertEqual({"memory"}, container["resources"]["limits"].keys())

    def test_a_rollout_takes_no_pod_away_before_there_is_another(self):
        for where, spec, _, _ in self.each():
            with self.subTest(where):
                self.assertEqual(
                    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, spec["strategy"]
                )

    def test_probes_go_to_a_port_of_their_own_by_number(self):
        for where, _, _, container in self.each():
            with self.subTest(where):
                numbers = {port["name"]: port["containerPort"] for port in container["ports"]}
                for probe in ["startupProbe", "readinessProbe", "livenessProbe"]:
                    self.assertEqual(numbers["probe"], container[probe]["grpc"]["port"])
                self.assertEqual("liveness", container["livenessProbe"]["grpc"]["service"])
                self.assertNotEqual("liveness", container["readinessProbe"]["grpc"]["service"])
