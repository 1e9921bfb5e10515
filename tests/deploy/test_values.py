"""Wrong values are refused before anything is sent to a cluster, with the place and the reason."""
import json
import tempfile
import unittest

import yaml

import kit

TYPE, ENUM, LEAST, MOST, PATTERN = "want ", "must be one of", "minimum", "maximum", "does not match pattern"
EXTRA = "additional properties"

# A value, where the message says it is wrong, and why.
REFUSED = [
    ({"replicas": 3}, "at ''", EXTRA),
    ({"replicaCount": 0}, "/replicaCount", LEAST),
    ({"replicaCount": "3"}, "/replicaCount", TYPE),
    ({"autoscaling": {"maxReplicas": 1001}}, "/autoscaling/maxReplicas", MOST),
    ({"autoscaling": {"targetCPU": 50}}, "/autoscaling", EXTRA),
    ({"autoscaling": {"enabled": "yes"}}, "/autoscaling/enabled", TYPE),
    ({"autoscaling": {"targetCPUUtilizationPercentage": 101}}, "/autoscaling/targetCPUUtilizationPercentage", MOST),
    ({"autoscaling": {"minReplicas": 10}}, "autoscaling.minReplicas", "more than autoscaling.maxReplicas"),
    ({"podDisruptionBudget": {"maxUnavailable": 0}}, "/podDisruptionBudget/maxUnavailable", LEAST),
    ({"podDisruptionBudget": {"maxUnavailable": "0%"}}, "/podDisruptionBudget/maxUnavailable", PATTERN),
    ({"image": {"repository": ""}}, "/image/repository", "minLength"),
    ({"image": {"digest": "latest"}}, "/image/digest", PATTERN),
    ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy", ENUM),
    ({"policy": {"text": {"version": 1}}}, "/policy/text", TYPE),
    ({"policy": {"text": ""}}, "/policy/text", "minLength"),
    ({"policy": {"restartOnChange": "false"}}, "/policy/restartOnChange", TYPE),
    ({"store": {"url": "http://redis:6379"}}, "/store/url", PATTERN),
    ({"store": {"url": "redis://retryd:secret@redis:6379"}}, "/store/url", PATTERN),
    ({"store": {"password": "secret"}}, "/store", EXTRA),
    ({"store": {"prefix": "a b"}}, "/store/prefix", PATTERN),
    ({"store": {"passwordKey": "../password"}}, "/store/passwordKey", PATTERN),
    ({"store": {"replicas": 1001}}, "/store/replicas", MOST),
    ({"store": {"caKey": "ca.crt"}}, "store.caKey", "store.secretName"),
    ({"tls": {"clientCAKey": "ca.crt"}}, "tls.clientCAKey", "tls.secretName"),
    ({"tls": {"secretName": "tls", "clientCAKey": "../ca.crt"}}, "/tls/clientCAKey", PATTERN),
    ({"drain": {"timeoutSeconds": "25s"}}, "/drain/timeoutSeconds", TYPE),
    ({"drain": {"delaySeconds": 26}}, "drain.delaySeconds", "more than drain.timeoutSeconds"),
    ({"connectionAge": "5 minutes"}, "/connectionAge", PATTERN),
    ({"connectionAge": 300}, "/connectionAge", TYPE),
    ({"maxBalances": 0}, "/maxBalances", LEAST),
    ({"log": ""}, "/log", "minLength"),
    ({"listenHost": "127.0.0.1"}, "/listenHost", ENUM),
    ({"resources": {"limit": {"memory": "1Gi"}}}, "/resources", EXTRA),
    ({"networkPolicy": {"from": [{"namespace": "shop"}]}}, "/networkPolicy/from/0", EXTRA),
    ({"networkPolicy": {"storePorts": [0]}}, "/networkPolicy/storePorts/0", LEAST),
    ({"networkPolicy": {"storePorts": []}}, "/networkPolicy/storePorts", "minItems"),
    ({"serviceMonitor": {"enabled": 1}}, "/serviceMonitor/enabled", TYPE),
    ({"podLabels": {"tier": 1}}, "/podLabels/tier", TYPE),
    ({"extraEnv": [{"value": "1"}]}, "/extraEnv/0", "missing property"),
]


class Values(unittest.TestCase):
    def test_wrong_values_are_refused(self):
        for values, place, reason in REFUSED:
            with self.subTest(values=values), tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                json.dump(values, file)
                file.flush()
                rendered = kit.helm("template", "retryd", kit.CHART, "--values", file.name)
                self.assertNotEqual(0, rendered.returncode)
                lines = [line for line in rendered.stderr.splitlines() if place in line]
                self.assertTrue(any(reason in line for line in lines), rendered.stderr)

    def test_the_schema_knows_each_value_and_no_other(self):
        values = yaml.safe_load((kit.CHART / "values.yaml").read_text())
        schema = json.loads((kit.CHART / "values.schema.json").read_text())
        del schema["properties"]["global"]  # Helm's own.
        self.assert_same_keys(values, schema, "values")

    def assert_same_keys(self, values: dict, schema: dict, place: str):
        known = schema.get("properties")
        if known is None or place == "values.resources":
            return
        self.assertEqual(known.keys(), values.keys(), place)
        self.assertIs(False, schema["additionalProperties"], place)
        for key, value in values.items():
            if isinstance(value, dict):
                self.assert_same_keys(value, known[key], f"{place}.{key}")

    def test_a_chart_that_depends_on_this_one_may_hand_down_its_globals(self):
        rendered = kit.helm("template", "retryd", kit.CHART, "--set", "global.region=eu")
        self.assertEqual(0, rendered.returncode, rendered.stderr)

    def test_names_stay_within_the_63_characters_of_a_label(self):
        for release, override in [("a" * 53, ""), ("retryd" + "a" * 47, ""), ("retryd", "b" * 80)]:
            with self.subTest(release=release, override=override):
                rendered = kit.helm("template", release, kit.CHART, "--set", f"fullnameOverride={override}")
                self.assertEqual(0, rendered.returncode, rendered.stderr)
                names = [found["metadata"]["name"] for found in yaml.safe_load_all(rendered.stdout)]
                self.assertLessEqual(max(map(len, names)), 63)
