"""The image, as far as that can be told without building it."""
import re
import shutil
import tempfile
import tomllib
import unittest
from pathlib import Path

import yaml

import kit

DOCKERFILE = (kit.DEPLOY / "Dockerfile").read_text()


class Image(unittest.TestCase):
    def test_the_dockerfile_passes_its_linter(self):
        linted = kit.run(kit.TOOLS / "venv" / "bin" / "hadolint", kit.DEPLOY / "Dockerfile")
        self.assertEqual(0, linted.returncode, linted.stdout)

    def test_what_is_copied_is_let_in_and_is_enough_for_cargo(self):
        copied = [path for line in re.findall(r"^COPY ([^-].*) \S+$", DOCKERFILE, re.M) for path in line.split()]
        let_in = re.findall("^!(.+)$", (kit.DEPLOY / "Dockerfile.dockerignore").read_text(), re.M)
        self.assertEqual(sorted(let_in), sorted(copied))
        with tempfile.TemporaryDirectory() as folder:
            for path in copied:
                Path(folder, path).parent.mkdir(exist_ok=True)
                copy = shutil.copytree if (kit.ROOT / path).is_dir() else shutil.copy
                copy(kit.ROOT / path, Path(folder, path))
            options = ["--offline", "--no-deps", "--format-version", "1", "--manifest-path", Path(folder, "Cargo.toml")]
            read = kit.run("cargo", "metadata", *options)
            self.assertEqual(0, read.returncode, read.stderr)

    def test_it_runs_as_the_user_of_the_pods(self):
        pod = kit.only("Deployment", kit.objects("kustomize-base"))["spec"]["template"]["spec"]
        context = pod["securityContext"]
        self.assertIn(f"\nUSER {context['runAsUser']}:{context['runAsGroup']}\n", DOCKERFILE)
        ports = " ".join(str(port["containerPort"]) for port in pod["containers"][0]["ports"])
        self.assertIn(f"\nEXPOSE {ports}\n", DOCKERFILE)

    def test_versions_agree(self):
        package = tomllib.loads((kit.ROOT / "Cargo.toml").read_text())["package"]
        chart = yaml.safe_load((kit.CHART / "Chart.yaml").read_text())
        self.assertEqual(package["version"], chart["appVersion"])
        self.assertIn(f"\nFROM rust:{package['rust-version']}-", DOCKERFILE)
        image = f"ghcr.io/retryd/retryd:{package['version']}"
        for name in ["helm-default", "kustomize-base"]:
            [container] = kit.only("Deployment", kit.objects(name))["spec"]["template"]["spec"]["containers"]
            self.assertEqual(image, container["image"])
