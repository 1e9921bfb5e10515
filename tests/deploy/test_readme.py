"""What the README of the kit tells its users to write."""
import os
import re
import tempfile
import unittest
from pathlib import Path

import yaml

import kit

README = (kit.DEPLOY / "README.md").read_text()
POLICY = "version: 1\npolicies:\n  - name: ours\n"


class Readme(unittest.TestCase):
    def test_its_overlay_puts_in_the_namespace_the_image_and_the_policy(self):
        [overlay] = re.findall(r"```yaml\n(.*?)```", README, re.S)
        with tempfile.TemporaryDirectory() as folder:
            to_root = os.path.relpath(kit.ROOT, Path(folder).resolve())
            overlay = overlay.replace("PATH", to_root).replace("REGISTRY", "registry.example.com")
            Path(folder, "kustomization.yaml").write_text(overlay)
            Path(folder, "policy.yaml").write_text(POLICY)
            rendered = kit.run(kit.TOOLS / "bin" / "kubectl", "kustomize", folder)
        self.assertEqual(0, rendered.returncode, rendered.stderr)
        objects = list(yaml.safe_load_all(rendered.stdout))
        self.assertEqual({"retryd"}, {found["metadata"]["namespace"] for found in objects})
        policy = kit.only("ConfigMap", objects)
        self.assertEqual({"policy.yaml": POLICY}, policy["data"])
        # With a hash behind it, another policy would be a rollout.
        self.assertEqual("retryd-policy", policy["metadata"]["name"])
        [container] = kit.only("Deployment", objects)["spec"]["template"]["spec"]["containers"]
        self.assertEqual("registry.example.com/retryd", container["image"].rpartition(":")[0])

    def test_its_settings_are_values_of_the_chart(self):
        values = yaml.safe_load((kit.CHART / "values.yaml").read_text())
        named = re.findall(r"--set(?:-file)? ([\w.]+)=", README)
        self.assertIn("store.url", named)
        for path in named:
            with self.subTest(path):
                found = values
                for key in path.split("."):
                    found = found[key]

    def test_its_names_are_those_of_the_service(self):
        names = {found["metadata"]["name"] for found in kit.objects("helm-default") if found["kind"] == "Service"}
        told = re.findall(r'"(?:dns:///)?([\w-]+)\.NAMESPACE:(\d+)"', README)
        self.assertEqual(5, len(told), "one for each language")
        for name, port in told:
            self.assertIn(name, names)
            self.assertEqual("50051", port)
