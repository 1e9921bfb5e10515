"""The page and the pictures of `retryd simulate` in a real Chromium, from a short outage."""
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

from selenium.webdriver.common.by import By

import browser

SCENARIO = """\
duration: 12s
clients: {count: 5, calls_per_second: 60}
service: {workers: 4, queue: 100}
outage: {from: 3s, length: 2s}
recovered: {for: 2s}
grid: {work_percent: [100, 1000], outage: [1s], calls_per_second: [40, 80], clients: [5], without_key_percent: [0, 50]}
"""
SVG = "{http://www.w3.org/2000/svg}"


class Simulate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        scenario, cls.page = cls.folder / "scenario.yaml", cls.folder / "page.html"
        scenario.write_text(SCENARIO)
        command = [browser.RETRYD, "simulate", "--scenario", scenario, "--seeds", "2"]
        command += ["--html", cls.page, "--pictures", cls.folder / "pictures"]
        cls.said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10 * browser.SOON)

    def open(self, **options):
        driver = self.enterContext(browser.chromium(**options))
        driver.get(self.page.as_uri())
        return driver

    def test_the_page_has_no_barrier_in_light_dark_or_narrow(self):
        for options in [{}, {"scheme": "dark"}, {"width": 400}]:
            with self.subTest(**options):
                driver = self.open(**options)
                for closed in driver.find_elements(By.CSS_SELECTOR, "details:not([open]) > summary"):
                    closed.click()
                self.assertEqual([], browser.complaints(driver))
                self.assertEqual([], browser.barriers(driver))

    def test_all_of_it_is_there_without_javascript(self):
        driver = self.open(script=False)
        rows = driver.find_elements(By.CSS_SELECTOR, "#figures ~ .wide tbody tr")
        panels = driver.find_elements(By.TAG_NAME, "figure")
        self.assertEqual(2 * len(rows), len(panels))
        for panel in panels:
            self.assertGreater(panel.find_element(By.TAG_NAME, "svg").size["height"], 100)
        titles = [row.find_element(By.TAG_NAME, "th").text for row in rows]
        self.assertEqual(2 * titles, [panel.find_element(By.TAG_NAME, "figcaption").text for panel in panels])

    def test_the_colours_follow_the_scheme(self):
        def colours(**options) -> list[str]:
            driver = self.open(**options)
            line = driver.find_element(By.CSS_SELECTOR, "figure polyline")
            letters = driver.find_element(By.CSS_SELECTOR, "figure text")
            return [line.value_of_css_property("stroke"), letters.value_of_css_property("fill")]

        for light, dark in zip(colours(), colours(scheme="dark"), strict=True):
            self.assertNotEqual(light, dark)

    def test_the_terminal_has_the_rows_of_the_page_and_no_bar(self):
        self.assertEqual("", self.said.stderr)
        driver = self.open()
        for row in driver.find_elements(By.CSS_SELECTOR, "#figures ~ .wide tbody tr"):
            title = row.find_element(By.TAG_NAME, "th").text
            told = next(line for line in self.said.stdout.splitlines() if line.strip().startswith(title + "  "))
            means = [cell.text.splitlines()[0] for cell in row.find_elements(By.TAG_NAME, "td")]
            self.assertEqual(means, [cell.strip() for cell in told.strip().split("  ") if cell.strip()][1:])

    def test_pictures_are_whole_documents(self):
        pictures = sorted((self.folder / "pictures").glob("*.svg"))
        self.assertEqual(5, len(pictures))
        for picture in pictures:
            root = xml.parse(picture).getroot()
            self.assertEqual(f"{SVG}svg", root.tag)
            self.assertTrue(root.findtext(f"{SVG}title"))
