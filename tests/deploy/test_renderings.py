"""What is rendered: as committed, valid, the same by both tools."""
import difflib
import unittest

import kubernetes_validate
import yaml

import kit

# The oldest that the chart allows, the newest with a schema, and one between.
VERSIONS = ["1.31", "1.34", "1.37"]
# Known to the Prometheus operator alone; test_references.py looks at what they refer to.
WITHOUT_SCHEMA = {"ServiceMonitor"}
# What Helm adds.
HELM_LABELS = {"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"}
# Lists whose order means nothing.
NAMED = {"env", "ports", "volumes", "volumeMounts"}


class Renderings(unittest.TestCase):
    def test_they_are_as_committed(self):
        for name in kit.NAMES:
            with self.subTest(name):
                committed = kit.snapshot(name).read_text().splitlines()
                differences = "\n".join(
                    difflib.unified_diff(committed, kit.text(name).splitlines(), "committed", "rendered", lineterm="")
                )
                self.assertEqual("", differences, "if it is meant: tests/deploy/run --update")

    def test_they_are_valid_for_each_kubernetes(self):
        for name in kit.NAMES:
            for found in kit.objects(name):
                if found["kind"] in WITHOUT_SCHEMA:
                    continue
                for version in VERSIONS:
                    with self.subTest(name, kind=found["kind"], version=version):
                        kubernetes_validate.validate(found, version, strict=True)

    def test_the_oldest_is_what_the_chart_says(self):
        chart = yaml.safe_load((kit.CHART / "Chart.yaml").read_text())
        self.assertEqual(f">={VERSIONS[0]}.0-0", chart["kubeVersion"])

    def test_the_chart_and_the_base_say_the_same(self):
        for chart, kustomize in [("helm-default", "kustomize-base"), ("helm-store", "kustomize-store")]:
            ours, theirs = comparable(chart), comparable(kustomize)
            self.assertEqual(ours.keys(), theirs.keys())
            for key in ours:
                with self.subTest(chart, object=key):
                    self.assertEqual(ours[key], theirs[key])

    def test_the_chart_passes_its_linter(self):
        for values in sorted((kit.HERE / "values").glob("*.yaml")):
            with self.subTest(values.stem):
                linted = kit.helm("lint", "--strict", kit.CHART, "--values", values)
                self.assertEqual(0, linted.returncode, linted.stdout + linted.stderr)


def comparable(name: str) -> dict[tuple[str, str], dict]:
    """The objects of a rendering by kind and name, without the labels that Helm adds."""
    found = [settled(each) for each in kit.objects(name)]
    for each in found:
        for label in HELM_LABELS:
            each["metadata"]["labels"].pop(label, None)
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def settled(value, key=""):
    """The value with lists in one order."""
    if isinstance(value, dict):
        return {name: settled(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        inner = [settled(each) for each in value]
        return sorted(inner, key=lambda each: each.get("name", "")) if key in NAMED else inner
    return value
