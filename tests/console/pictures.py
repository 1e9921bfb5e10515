"""Pictures of the console's pages, for people to look at."""
import json
import sys
from pathlib import Path

from selenium.webdriver.common.by import By

import browser
from test_console import CONNECT, EXHAUSTED

WRONG = json.dumps({"attemptsMade": 0, "tenant": "shop-1", "failure": {"httpStatus": 99}}, indent=2)
ASKED = {"no": EXHAUSTED, "yes": json.dumps(CONNECT, indent=2), "refused": WRONG, "unreadable": '{\n  "tenant": shop\n}'}
FIELDS = "/ask?tenant=shop-1&operation=search&attempts_made=1&failure=HTTP&status=503&retry_after_header=3"
LOOKS = {"light": {}, "dark": {"scheme": "dark"}, "narrow": {"width": 390}}


def take(driver, path: Path) -> None:
    size = driver.execute_script("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
    device = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    driver.save_screenshot(str(path))
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device | {"height": 900})


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with browser.retryd() as retryd:
        for tenant, count in {"shop-1": 3, "drained": 9, "<b>bold\u202e": 1, "x" * 128: 5}.items():
            for _ in range(count):
                retryd.decide(tenant)
        for look, options in LOOKS.items():
            with browser.chromium(**options) as driver:
                for name, page in {"now": "", "ask": "/ask", "policies": "/policies", "fields": FIELDS}.items():
                    driver.get(retryd.console + page)
                    take(driver, folder / f"{name}-{look}.png")
                for name, text in ASKED.items():
                    driver.get(f"{retryd.console}/ask")
                    field = driver.find_element(By.NAME, "context")
                    field.clear()
                    field.send_keys(text)
                    field.submit()
                    browser.until(driver, lambda found: found.find_elements(By.ID, "answer"), "no answer")
                    take(driver, folder / f"{name}-{look}.png")


main(Path(sys.argv[1]))
