"""A real Chromium without a screen, and what tests and pictures ask of it."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
PATIENCE = 60.0    # s: a deadline against hanging for ever


def why_not():
    """Why there is no browser here; "" if there is one."""
    try:
        import selenium  # noqa: F401
        import viser  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed"
    return "" if CHROMIUM and DRIVER else "there is no chromium with its chromedriver"


@contextmanager
def browser(width=1280, height=860):
    """A selenium driver."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
                     "--disable-dev-shm-usage", f"--window-size={width},{height}", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER, log_output=os.devnull))
    try:
        driver.set_script_timeout(PATIENCE)
        yield driver
    finally:
        driver.quit()


def wait(condition, what, patience=PATIENCE):
    """The first true value of `condition()`; the page may replace what it just found, or lay a notice over it."""
    from selenium.common.exceptions import ElementClickInterceptedException as Covered
    from selenium.common.exceptions import StaleElementReferenceException as Replaced
    from selenium.webdriver.support.wait import WebDriverWait
    return WebDriverWait(None, patience, poll_frequency=0.02, ignored_exceptions=[Replaced, Covered]).until(
        lambda _: condition(), f"waited {patience:.0f} s without success for {what}")


def clicked(driver, element):
    """Whether there was one to click."""
    if element is not None:
        driver.execute_script("arguments[0].click()", element)
    return element is not None


def press(driver, name):
    """The button of this name, as soon as it is there."""
    wait(lambda: clicked(driver, next((button for button in driver.find_elements("css selector", "button")
                                       if button.text == name), None)), f"button {name}")


def visit(driver, server):
    """Open the page of a server and wait until bars and scene are there."""
    from rbd_ros.view.serving import url_of

    driver.get(url_of(server))
    wait(lambda: driver.execute_script("return document.querySelectorAll('.rbd-bars').length"), "the bars")
    wait(lambda: driver.execute_script("return !!document.querySelector('canvas')"), "the scene")
    close_notices(driver)


def close_notices(driver):
    """Those that viser shows where there is no graphics card; in one script, as they also go by themselves."""
    driver.execute_script("document.querySelectorAll('.mantine-Notification-closeButton').forEach(x => x.click())")


def open_tab(driver, name):
    """The tab whose label begins with this name."""
    def is_open():
        for tab in driver.find_elements("css selector", "[role=tab]"):
            if tab.text.startswith(name):
                if tab.get_attribute("aria-selected") == "true":
                    return True
                tab.click()    # a tab listens to more than the event of a click
        return False

    wait(is_open, f"tab {name}")


def texts(driver, selector):
    """Of all elements that are there now."""
    return driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(x => x.innerText)", selector)


def labelled(driver, label):
    """The input of the control with this label; None if it is not there."""
    return driver.execute_script("""
        const label = [...document.querySelectorAll('label')].find(item => item.innerText.trim() == arguments[0]);
        if (!label) return null;
        const own = label.htmlFor && document.getElementById(label.htmlFor);
        if (own) return own;
        let box = label;
        while (box && !box.querySelector('input,[role=slider]')) box = box.parentElement;
        return box && box.querySelector('[role=slider],input');""", label)


def check(driver, *labels):
    """Click these checkboxes."""
    for label in labels:
        wait(lambda label=label: clicked(driver, labelled(driver, label)), label)


def complaints(driver):
    """What the browser logged as an error, but for files of the network."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"
            and "ERR_NAME_NOT_RESOLVED" not in entry["message"] and "ERR_INTERNET" not in entry["message"]]
