"""A retryd process and a Chromium that looks at its console."""
import json
import subprocess
import sysconfig
import tempfile
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).resolve().parents[2]
RETRYD = ROOT / "target" / "debug" / "retryd"
GRPCURL = ROOT / "target" / "tools" / "bin" / "grpcurl"
AXE = Path(sysconfig.get_paths()["purelib"], "axe_playwright_python", "axe.min.js")

# Long enough for a busy machine; nothing that works takes so long.
SOON = 30

# Time alone gives nothing to a bucket, so a balance stays as it is while a browser looks.
POLICY = """\
version: 1
budgets:
  - {name: per-tenant, scope: tenant, token_bucket: {capacity: 8, costs: {transient: 1, throttling: 1, timeout: 1}}}
  - {name: backstop, scope: global, ratio: {percent: 10, interval: 10s, min_retry_rate: {count: 500, interval: 1s}}}
policies:
  - name: payments
    match: {tenant: "shop-*", operation: "payments.v1.Payments/*"}
    max_attempts: 2
    max_hint: 1m
    budgets: [per-tenant, backstop]
  - name: everything-else
    budgets: [per-tenant, backstop]
"""


class Retryd:
    def __init__(self, process: subprocess.Popen, addresses: dict[str, str]):
        self._process = process
        self.calls = addresses["calls"]
        self.console = f"http://{addresses['admin']}/console"

    def decide(self, tenant: str) -> None:
        """Asks as a caller would, and pays."""
        context = {"tenant": tenant, "operation": "op", "attemptsMade": 1, "bodyReplayable": True}
        context["failure"] = {"category": "FAILURE_CATEGORY_CONNECT"}
        method = "retryd.v1.RetryService/Decide"
        command = [GRPCURL, "-plaintext", "-d", json.dumps(context), self.calls, method]
        subprocess.run(command, check=True, capture_output=True, timeout=SOON)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def retryd():
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder, "policy.yaml")
        policy.write_text(POLICY)
        listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
        command = [RETRYD, "serve", "--policy", policy, *listen]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={})
        try:
            yield Retryd(process, addresses(process))
        finally:
            process.kill()
            process.communicate()


def addresses(process: subprocess.Popen) -> dict[str, str]:
    found = {}
    for line in process.stderr:
        told = json.loads(line)
        if "port" in told:
            found[told["port"]] = told["listen"]
        if found.keys() >= {"calls", "admin"}:
            return found
    raise AssertionError(f"retryd ended with {process.wait()}")


@contextmanager
def chromium(scheme: str = "light", width: int = 1100, script: bool = True):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    # Without a sandbox, as root cannot have one; it opens nothing but loopback.
    for argument in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},900"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not script:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        # A window is never as narrow as a phone.
        device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        yield driver
    finally:
        driver.quit()


def complaints(driver) -> list[str]:
    """What the browser has to say, but for the status of a page that told of an error."""
    return [said["message"] for said in driver.get_log("browser") if "status of 422" not in said["message"]]


def barriers(driver) -> list[str]:
    """What axe finds on the page, and whether it scrolls sideways."""
    driver.execute_script(AXE.read_text())
    found = driver.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    told = [f"{each['id']}: {each['help']}: {[node['html'] for node in each['nodes']]}" for each in found["violations"]]
    width, seen = driver.execute_script("const e = document.documentElement; return [e.scrollWidth, e.clientWidth]")
    return told + ([f"{width} pixels on {seen}"] if seen < width else [])


def until(driver, condition, message: str):
    return WebDriverWait(driver, SOON).until(condition, message)
