"""The console in a real Chromium: with and without JavaScript, by keyboard, in light and dark."""
import json
import unittest

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import browser

PAGES = ["", "/ask", "/policies"]
CONNECT = {
    "tenant": "shop-1",
    "operation": "payments.v1.Payments/Charge",
    "attemptsMade": 1,
    "bodyReplayable": True,
    "failure": {"category": "FAILURE_CATEGORY_CONNECT"},
}
EXHAUSTED = json.dumps(CONNECT | {"attemptsMade": 2})


class Console(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.retryd = cls.enterClassContext(browser.retryd())
        for _ in range(9):
            cls.retryd.decide("drained")
        cls.retryd.decide("<script>alert(1)</script>")

    def open(self, path: str = "", **options):
        driver = self.enterContext(browser.chromium(**options))
        driver.get(self.retryd.console + path)
        return driver

    def ask(self, driver, text: str) -> None:
        field = driver.find_element(By.NAME, "context")
        field.clear()
        field.send_keys(text)
        field.submit()
        browser.until(driver, lambda found: found.find_elements(By.ID, "answer"), "no answer")

    def test_a_pasted_context_shows_the_rule_that_decided(self):
        driver = self.open("/ask")
        self.ask(driver, EXHAUSTED)
        self.assertEqual("Do not retry", driver.find_element(By.ID, "verdict").text)
        objected = driver.find_element(By.CSS_SELECTOR, "tr.objected")
        self.assertIn("ATTEMPTS_EXHAUSTED objected attempts_made 2 of max 2", objected.text)
        self.assertEqual(15, len(driver.find_elements(By.CSS_SELECTOR, "#answer tbody tr")))
        self.assertEqual(EXHAUSTED, driver.find_element(By.NAME, "context").get_property("value"))
        self.ask(driver, json.dumps(CONNECT))
        self.assertRegex(driver.find_element(By.ID, "verdict").text, "^Retry after [0-9]+ms$")
        self.assertEqual([], browser.complaints(driver))

    def test_what_is_wrong_is_told_beside_the_text(self):
        driver = self.open("/ask")
        self.ask(driver, '{\n"tenant": shop}')
        self.assertIn("Line 2, column 11", driver.find_element(By.ID, "problem").text)
        field = driver.find_element(By.NAME, "context")
        self.assertEqual('{\n"tenant": shop}', field.get_property("value"))
        self.assertEqual("true", field.get_attribute("aria-invalid"))
        self.ask(driver, '{"attemptsMade": 1}')
        fields = [cell.text for cell in driver.find_elements(By.CSS_SELECTOR, "#problem tbody th")]
        self.assertEqual(["tenant", "operation", "failure"], fields)
        self.assertEqual([], browser.complaints(driver))

    def test_all_of_it_works_without_javascript(self):
        driver = self.open("/ask", script=False)
        self.ask(driver, EXHAUSTED)
        self.assertEqual("Do not retry", driver.find_element(By.ID, "verdict").text)
        driver.find_element(By.LINK_TEXT, "payments").click()
        self.assertTrue(driver.find_element(By.ID, "policy-payments").is_displayed())
        driver.find_element(By.LINK_TEXT, "Now").click()
        self.assertIn("drained", driver.find_element(By.ID, "live").text)
        self.assertFalse(driver.find_element(By.ID, "pause").is_displayed(), "a button that does nothing")

    def test_the_keyboard_is_enough(self):
        driver = self.open()

        def press(*keys: str) -> None:
            driver.switch_to.active_element.send_keys(*keys)

        press(Keys.TAB)
        self.assertEqual("Skip to the content", driver.switch_to.active_element.text)
        self.assertGreaterEqual(driver.switch_to.active_element.location["x"], 0, "nobody sees it")
        press(Keys.TAB, Keys.TAB)
        self.tab_to(driver, lambda at: at.text == "Ask")
        press(Keys.ENTER)
        browser.until(driver, lambda found: found.find_elements(By.NAME, "context"), "no form")
        self.tab_to(driver, lambda at: at.get_attribute("name") == "context")
        press(Keys.CONTROL + "a")
        press(EXHAUSTED)
        self.tab_to(driver, lambda at: at.tag_name == "button")
        self.assertNotEqual("none", driver.switch_to.active_element.value_of_css_property("outline-style"))
        press(Keys.ENTER)
        browser.until(driver, lambda found: found.find_elements(By.ID, "answer"), "no answer")
        self.assertEqual("Do not retry", driver.find_element(By.ID, "verdict").text)

    def tab_to(self, driver, is_there) -> None:
        for _ in range(30):
            if is_there(driver.switch_to.active_element):
                return
            driver.switch_to.active_element.send_keys(Keys.TAB)
        self.fail("the keyboard does not get there")

    def test_the_fields_ask_too(self):
        driver = self.open("/ask")
        driver.find_element(By.TAG_NAME, "summary").click()
        field = driver.find_element(By.ID, "attempts_made")
        field.clear()
        field.send_keys("2", Keys.ENTER)
        browser.until(driver, lambda found: found.find_elements(By.ID, "answer"), "no answer")
        self.assertIn("attempts_made 2 of max 2", driver.find_element(By.CSS_SELECTOR, "tr.objected").text)
        context = json.loads(driver.find_element(By.NAME, "context").get_property("value"))
        self.assertEqual(2, context["attemptsMade"])

    def test_budgets_are_brought_up_to_date(self):
        driver = self.open()
        self.assertNotIn("late-comer", driver.find_element(By.ID, "live").text)
        self.retryd.decide("late-comer")

        def shows(found):
            return "late-comer" in found.find_element(By.ID, "live").text

        browser.until(driver, shows, "the page stays as it was")
        driver.find_element(By.ID, "pause").click()
        self.assertEqual("Paused.", driver.find_element(By.ID, "state").text)
        self.assertEqual([], browser.complaints(driver))

    def test_names_are_text(self):
        driver = self.open()
        self.assertIn("<script>alert(1)</script>", driver.find_element(By.ID, "live").text)
        self.assertEqual(1, len(driver.find_elements(By.TAG_NAME, "script")))
        self.assertEqual([], browser.complaints(driver))

    def test_no_page_has_a_barrier_in_light_dark_or_narrow(self):
        for options in [{}, {"scheme": "dark"}, {"width": 360}]:
            driver = self.open(**options)
            for path in PAGES:
                with self.subTest(path, **options):
                    driver.get(self.retryd.console + path)
                    self.has_no_barrier(driver)
            for text in [EXHAUSTED, json.dumps(CONNECT), "{}", "{"]:
                with self.subTest(text, **options):
                    driver.get(f"{self.retryd.console}/ask")
                    self.ask(driver, text)
                    self.has_no_barrier(driver)

    def has_no_barrier(self, driver) -> None:
        for closed in driver.find_elements(By.CSS_SELECTOR, "details:not([open]) > summary"):
            closed.click()
        self.assertEqual([], browser.complaints(driver))
        self.assertEqual([], browser.barriers(driver))


class Ending(unittest.TestCase):
    def test_a_page_whose_retryd_is_gone_says_so(self):
        with browser.retryd() as retryd, browser.chromium() as driver:
            driver.get(retryd.console)
            retryd.stop()

            def tells(found):
                return "does not answer" in found.find_element(By.ID, "state").text

            browser.until(driver, tells, "old numbers look like new ones")
