"""Objects find each other: what a schema cannot tell."""
import unittest

import kit
from pod import content_of


class References(unittest.TestCase):
    def setUp(self):
        self.renderings = {name: kit.objects(name) for name in kit.NAMES}

    def each(self, kind: str):
        """Each object of a kind: where it is, itself, the Deployment of its rendering, and all that is beside it."""
        for name, objects in self.renderings.items():
            for found in objects:
                if found["kind"] == kind:
                    yield f"{name}: {found['metadata']['name']}", found, kit.only("Deployment", objects), objects

    def test_everything_selects_the_pods(self):
        selectors = {
            "Deployment": lambda spec: spec["selector"]["matchLabels"],
            "Service": lambda spec: spec["selector"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
        }
        for kind, selector in selectors.items():
            for where, found, deployment, _ in self.each(kind):
                with self.subTest(where):
                    self.assertLessEqual(selector(found["spec"]).items(), labels_of_pods(deployment).items())
                    self.assertIn("app.kubernetes.io/instance", selector(found["spec"]), "releases must not mix")
        for where, deployment, _, _ in self.each("Deployment"):
            with self.subTest(where):
                for spread in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]:
                    self.assertEqual(deployment["spec"]["selector"], spread["labelSelector"])

    def test_services_lead_to_ports_of_the_container(self):
        for where, service, deployment, _ in self.each("Service"):
            with self.subTest(where):
                named = {port["name"]: port["containerPort"] for port in container_of(deployment)["ports"]}
                for port in service["spec"]["ports"]:
                    # Behind a headless Service nothing translates ports.
                    self.assertEqual(port["port"], named[port["targetPort"]])

    def test_the_network_policy_lets_in_what_services_lead_to(self):
        for where, policy, _, objects in self.each("NetworkPolicy"):
            with self.subTest(where):
                open_ports = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
                services = [found for found in objects if found["kind"] == "Service"]
                self.assertEqual({port["port"] for found in services for port in found["spec"]["ports"]}, open_ports)

    def test_the_network_policy_lets_out_what_the_store_needs(self):
        for where, policy, deployment, _ in self.each("NetworkPolicy"):
            with self.subTest(where):
                variables = {each["name"]: each["value"] for each in container_of(deployment)["env"]}
                out = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
                store = variables.get("RETRYD_STORE")
                self.assertEqual({53, int(store.rpartition(":")[2])} if store else set(), out)

    def test_the_autoscaler_scales_the_deployment_that_leaves_it_the_number(self):
        for where, scaler, deployment, _ in self.each("HorizontalPodAutoscaler"):
            with self.subTest(where):
                target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"]}
                self.assertEqual(target, scaler["spec"]["scaleTargetRef"])
                self.assertNotIn("replicas", deployment["spec"])

    def test_each_pod_is_scraped_once(self):
        for where, monitor, _, objects in self.each("ServiceMonitor"):
            with self.subTest(where):
                [endpoint] = monitor["spec"]["endpoints"]
                wanted = monitor["spec"]["selector"]["matchLabels"].items()
                services = [found for found in objects if found["kind"] == "Service"]
                selected = [found for found in services if wanted <= found["metadata"]["labels"].items()]
                ports = [port["name"] for found in selected for port in found["spec"]["ports"]]
                self.assertEqual(1, ports.count(endpoint["port"]))

    def test_pods_find_their_account_and_their_policy(self):
        for where, deployment, _, objects in self.each("Deployment"):
            with self.subTest(where):
                pod = deployment["spec"]["template"]["spec"]
                account = kit.only("ServiceAccount", objects)
                self.assertEqual(account["metadata"]["name"], pod["serviceAccountName"])
                if any(found["kind"] == "ConfigMap" for found in objects):
                    [policy] = [volume for volume in pod["volumes"] if volume["name"] == "policy"]
                    self.assertIn("policy.yaml", content_of(policy, objects))


def container_of(deployment: dict) -> dict:
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return container


def labels_of_pods(deployment: dict) -> dict[str, str]:
    return deployment["spec"]["template"]["metadata"]["labels"]
