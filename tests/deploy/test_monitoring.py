"""Alerts and the board: promtool takes them, each alert has its paragraph, and what they name is there."""
import json
import re
import tempfile
import unittest
from contextlib import contextmanager
from urllib.request import Request, urlopen

import yaml

import kit
from pod import free_port, pod

RULES = kit.DEPLOY / "prometheus" / "retryd.rules.yaml"
BOARD = kit.DEPLOY / "grafana" / "retryd.json"
RUNBOOK = kit.ROOT / "docs" / "runbook.md"
METRIC = re.compile(r"\bretryd_\w+")


class Alerts(unittest.TestCase):
    def test_they_fire_when_they_should_and_not_beside_it(self):
        played = kit.run("promtool", "test", "rules", RULES.with_name("retryd.test.yaml"))
        self.assertEqual(0, played.returncode, played.stdout + played.stderr)

    def test_each_of_them_is_played(self):
        played = yaml.safe_load(RULES.with_name("retryd.test.yaml").read_text())["tests"]
        fired = {each["alertname"] for test in played for each in test["alert_rule_test"] if each["exp_alerts"]}
        self.assertEqual({alert["alert"] for alert in alerts()}, fired)

    def test_each_has_its_paragraph(self):
        headings = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.M)
        self.assertEqual([alert["alert"] for alert in alerts()], headings, "in one order")
        for alert in alerts():
            url = alert["annotations"]["runbook_url"]
            self.assertEqual(f"docs/runbook.md#{alert['alert'].lower()}", url.partition("/blob/main/")[2])


class Board(unittest.TestCase):
    def test_each_expression_is_one(self):
        rules = [{"record": f"panel:{place}", "expr": expr} for place, expr in enumerate(expressions())]
        self.assertLess(20, len(rules))
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}, file)
            file.flush()
            checked = kit.run("promtool", "check", "rules", file.name)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)

    def test_panels_do_not_lie_on_each_other(self):
        taken = set()
        for panel in json.loads(BOARD.read_text())["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
            self.assertFalse(cells & taken, panel["title"])
            self.assertTrue(all(x < 24 for x, _ in cells), panel["title"])
            taken |= cells


class Metrics(unittest.TestCase):
    def test_what_alerts_and_board_name_is_there(self):
        with scraped() as text:
            told = {line.partition("{")[0].partition(" ")[0] for line in text.splitlines() if line[:1] != "#"}
        named = set(METRIC.findall(" ".join([*expressions(), *(alert["expr"] for alert in alerts())])))
        self.assertLess(15, len(named))
        # Counted by the field that was wrong, and nobody has asked wrongly.
        named.discard("retryd_context_violations_total")
        # Only there with a certificate: tests/process/tls.rs reads them.
        named -= {"retryd_tls_reloads_total", "retryd_tls_certificate_expiry_timestamp_seconds"}
        self.assertEqual(set(), named - told)

    def test_promtool_finds_nothing_to_say(self):
        with scraped() as text, tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            checked = kit.run("sh", "-c", f"promtool check metrics < {file.name}")
        self.assertEqual((0, ""), (checked.returncode, checked.stdout + checked.stderr))


@contextmanager
def scraped():
    """All metrics of a retryd that shares budgets, with a store that nobody runs."""
    with pod("helm-store", secrets(), {"redis:6379": f"127.0.0.1:{free_port()}"}) as running:
        url = f"http://127.0.0.1:{running.opened[9090]}/metrics"
        with urlopen(Request(url, headers={"Accept": "text/plain"}), timeout=30) as answer:
            yield answer.read().decode()


def secrets() -> list[dict]:
    return [{"kind": "Secret", "metadata": {"name": "retryd-store"}, "stringData": {"password": "secret"}}]


def alerts() -> list[dict]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    """Of every panel, with what Grafana puts in."""
    panels = json.loads(BOARD.read_text())["panels"]
    found = [target["expr"] for panel in panels for target in panel["targets"]]
    return [expr.replace("$__rate_interval", "5m").replace("$job", ".+") for expr in found]
