"""The dashboard in a real browser: Debian's Chromium, driven by Playwright, on servers of the tests' own.

Fails where either is missing: `apt-get install chromium`, `pip install playwright`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from manyarms.service.keys import Keys
from service.dashboard_server import HOSTILE, make

pytestmark = pytest.mark.slow

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WITHIN = 60.0
SCRIPT = Path(__file__).with_name("dashboard_server.py")
VERSION = "Boolean(document.querySelector('#tile-version .value')?.textContent.match(/[0-9]/))"


# ---- servers and browsers


class Served:
    """A server on loopback, ended by its process id."""

    def __init__(self, store: Path, *arguments: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, str(SCRIPT), str(store), str(self.port), *arguments]
        self._log = store.with_suffix(".log")
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + WITHIN
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/healthz", timeout=5).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    self.end()
                    pytest.fail(f"the server did not start: {self._log.read_text()[-2000:]}")
                time.sleep(0.1)

    def end(self) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                os.kill(self._process.pid, signal.SIGKILL)
                self._process.wait(20)

    def post(self, path: str, body: dict[str, Any], key: str = "") -> Any:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def decide(self, events: int, prefix: str, **more: Any) -> list[str]:
        context = {"age": 33.0, "device": "phone"}
        return [
            self.post("/v1/decide", {"context": context, "id": f"{prefix}-{number}", **more})["id"]
            for number in range(events)
        ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "full.db"
    make(path, 400)
    return path


@contextmanager
def serving(store: Path, folder: Path, *arguments: str) -> Iterator[Served]:
    """A server on a copy of the full store."""
    shutil.copy(store, folder / "live.db")
    served = Served(folder / "live.db", *arguments)
    try:
        yield served
    finally:
        served.end()


@pytest.fixture(scope="module")
def served(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(store, tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("the package playwright is not installed: pip install playwright")
    program = shutil.which("chromium")
    if program is None:
        pytest.fail("Chromium is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield found
        found.close()


class Tab:
    """A page, what it complained of, and where it asked."""

    def __init__(self, context: Any, served: Served) -> None:
        self.page, self._served = context.new_page(), served
        self.page.set_default_timeout(WITHIN * 1000)
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on(
            "console", lambda told: self.errors.append(told.text) if told.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: self.errors.append(f"a dialog: {dialog.message}"))

    def open(self, fragment: str = "") -> Any:
        self.page.goto(f"{self._served.address}/{fragment}")
        return self.page

    def ready(self, fragment: str = "") -> Any:
        """The overview, once figures are there."""
        page = self.open(fragment)
        self.until(VERSION)
        page.wait_for_selector("table.events tbody tr")
        return page

    def until(self, script: str, argument: Any = None) -> None:
        """Asked from outside: scripts that wait inside the page are made of texts, which the page's policy refuses."""
        end = time.monotonic() + WITHIN
        while not self.page.evaluate(script, argument):
            assert time.monotonic() < end, f"it did not come to be: {script}"
            self.page.wait_for_timeout(50)


Opening = Callable[..., Tab]


@pytest.fixture
def tab(browser: Any, served: Served) -> Iterator[Opening]:
    contexts = []

    def opened(on: Served = served, **options: Any) -> Tab:
        contexts.append(browser.new_context(**options))
        return Tab(contexts[-1], on)

    yield opened
    for context in contexts:
        context.close()


NOW = "(id) => document.querySelector(`#tile-${id} .note`).textContent"


# ---- what must be true


def test_it_loads_without_complaints_and_asks_nobody_else(tab: Opening, served: Served) -> None:
    one = tab()
    page = one.ready()
    page.wait_for_timeout(2500)  # a poll more
    assert one.errors == []
    assert one.asked and all(url.startswith(served.address + "/") for url in one.asked)
    for heading in ("Alarms", "Traffic", "Is it worth it?", "Checks", "Exploration and the catalogue", "Recent events"):
        assert page.get_by_role("heading", name=heading, exact=True).count() == 1
    assert page.get_by_role("img", name="Decisions and rewards a minute").count() == 1
    assert page.title() == "manyarms"


def test_numbers_change_when_events_come(tab: Opening, served: Served) -> None:
    one = tab()
    page = one.ready()
    before = int(page.evaluate(NOW, "decisions").split()[0].replace(",", ""))
    ids = served.decide(12, f"new-{time.monotonic_ns()}")
    one.until(
        "(least) => parseInt(document.querySelector('#tile-decisions .note').textContent.replaceAll(',', '')) >= least",
        before + 12,
    )
    one.until("(id) => document.querySelector('table.events tbody').textContent.includes(id)", ids[-1])
    served.post("/v1/reward", {"event": ids[-1], "value": 0.5})
    one.until(
        "(id) => [...document.querySelectorAll('table.events tbody tr')].some("
        "(row) => row.textContent.includes(id) && row.children[5].textContent === '0.5')",
        ids[-1],
    )
    assert one.errors == []


EACH = """([place, test]) => {
    const found = [...document.querySelectorAll('table.events tbody tr')].map((row) => row.children[place].textContent);
    const fits = test.startsWith('not ') ? (text) => text !== test.slice(4) : (text) => text.startsWith(test);
    return found.length > 0 && found.every(fits) && !document.querySelector('table.events').closest('[hidden]');
}"""


def test_filters(tab: Opening) -> None:
    one = tab()
    page = one.ready()
    page.get_by_label("Arm", exact=True).select_option("usual")
    one.until(EACH, [2, "usual"])
    page.get_by_label("Arm", exact=True).select_option("")
    page.get_by_label("only with a reward").check()
    one.until(EACH, [5, "not –"])
    page.get_by_label("only with a reward").uncheck()
    page.get_by_label("Text", exact=True).fill("visit-0001")
    one.until(EACH, [0, "visit-0001"])
    assert page.locator("table.events tbody tr").count() == 10
    page.get_by_label("Text", exact=True).fill("")
    page.get_by_label("Action", exact=True).fill("Blue shoes")
    one.until(EACH, [3, "Blue shoes"])
    page.get_by_label("Action", exact=True).fill("nothing of the kind")
    page.get_by_text("There is no such action.").wait_for()
    page.get_by_label("Action", exact=True).fill("")
    one.until("document.querySelectorAll('table.events tbody tr').length === 25")
    page.get_by_role("button", name="Show older events").click()
    one.until("document.querySelectorAll('table.events tbody tr').length === 50")


def test_the_pages_of_an_action_and_of_an_event(tab: Opening) -> None:
    one = tab()
    page = one.ready()
    page.get_by_label("Find an action").fill("Green tea/mint")
    page.get_by_label("Find an action").press("Enter")
    page.get_by_role("heading", name="Green tea/mint", level=1).wait_for()
    page.get_by_role("heading", name="Plays over time").wait_for()
    assert page.evaluate("document.activeElement.id") == "main"
    page.go_back()
    page.get_by_role("heading", name="Live decisions").wait_for()
    page.wait_for_selector("table.events tbody th a")
    page.locator("table.events tbody th a").first.click()
    page.get_by_role("button", name="Why this action?").click()
    page.get_by_role("img", name="What each feature added").wait_for()
    assert page.get_by_text("Root: shared by all actions").is_visible()
    page.get_by_role("link", name="← Overview").click()
    page.get_by_role("heading", name="Live decisions").wait_for()
    one.open("#/action/nothing")
    page.reload()
    page.get_by_text("There is no action with this id.").wait_for()
    assert [error for error in one.errors if "404" not in error] == []


def test_names_from_data_are_texts(tab: Opening, served: Served) -> None:
    served.post(
        "/v1/decide",
        {"context": {"age": 33.0, "device": "phone"}, "candidates": [HOSTILE], "id": "<b>bold", "unit": HOSTILE},
    )
    one = tab()
    page = one.ready()
    page.get_by_label("Text", exact=True).fill("<b>")
    one.until("[...document.querySelectorAll('table.events tbody th a')].some((a) => a.textContent === '<b>bold')")
    page.get_by_role("link", name=HOSTILE).first.click()
    page.get_by_role("heading", name=HOSTILE, level=1).wait_for()
    assert page.locator("main img").count() == 0 and page.locator("main b").count() == 0
    assert one.errors == []


def test_the_keyboard_reaches_everything_and_the_focus_is_seen(tab: Opening) -> None:
    one = tab(reduced_motion="reduce")
    page = one.ready()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    wanted = set(
        page.evaluate("""() => {
        let number = 0;
        return [...document.querySelectorAll('main a[href], main button, main input, main select, main summary')]
            .filter((one) => one.offsetParent !== null && !(one.type === 'radio' && !one.checked))
            .slice(0, 60)
            .map((one) => (one.dataset.reach = String(++number)));
    }""")
    )
    seen: set[str] = set()
    for _ in range(160):
        page.keyboard.press("Tab")
        told = page.evaluate("""() => {
            const one = document.activeElement;
            const shown = one.type === 'radio' ? one.nextElementSibling : one;
            const style = getComputedStyle(shown);
            const outline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
            return [one.dataset.reach || '', one.tagName, outline];
        }""")
        if told[0]:
            seen.add(told[0])
            assert told[2], f"the focus on {told} is not seen"
        if wanted <= seen:
            break
    assert wanted <= seen
    page.get_by_role("radio", name="1 hour").focus()
    page.keyboard.press("ArrowRight")
    one.until("document.getElementById('window-360').checked")
    page.get_by_role("button", name="Events", exact=True).press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Recent events"


def test_a_table_stands_beside_every_chart(tab: Opening) -> None:
    one = tab()
    page = one.ready()
    charts = page.locator("figure")
    for place in range(charts.count()):
        figure = charts.nth(place)
        if not figure.is_visible():
            continue
        label = figure.locator("svg[role=img]").get_attribute("aria-label")
        assert label and len(label) > 20
        figure.get_by_text("Show as a table").click()
        figure.locator("tbody tr").first.wait_for(state="attached")  # it is made when it is opened, a moment later
        assert figure.locator("caption").count() == 1


def test_the_error_state_comes_and_goes_by_itself(store: Path, tmp_path: Path, tab: Opening) -> None:
    with serving(store, tmp_path) as own:
        one = tab(on=own)
        page = one.ready()
        own.end()
        alert = page.get_by_role("alert")
        alert.get_by_text("No answer since").wait_for()
        assert alert.is_visible() and "Trying again" in alert.inner_text()
        assert "stale" in page.evaluate("document.body.className")
        assert page.locator("#freshness-text").inner_text() == "No answer"
        own.start()
        one.until("document.getElementById('trouble').textContent === ''")
        assert "stale" not in page.evaluate("document.body.className")
        one.until("document.getElementById('freshness-text').textContent.startsWith('Live')")


def test_with_keys_it_asks_for_one_and_keeps_it_in_the_tab(store: Path, tmp_path: Path, tab: Opening) -> None:
    path = tmp_path / "keys.json"
    keys = Keys.open(path, make=True)
    reader, decider = keys.add("reader", ["read"]), keys.add("decider", ["decide"])
    with serving(store, tmp_path, str(path)) as own:
        one = tab(on=own)
        page = one.open()
        dialog = page.get_by_role("dialog")
        dialog.wait_for()
        assert page.evaluate("document.activeElement.id") == "key-text"
        page.get_by_label("Key", exact=True).fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_text("That key does not do").wait_for()
        page.get_by_label("Key", exact=True).fill(decider)
        page.keyboard.press("Enter")
        page.get_by_text("has no scope").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Enter a key").click()
        page.get_by_label("Key", exact=True).fill(reader)
        page.keyboard.press("Enter")
        one.until(VERSION)
        assert not dialog.is_visible()
        assert page.evaluate("[Object.values(sessionStorage).length, Object.values(localStorage).length]") == [1, 0]
        assert reader not in page.content() and all(reader not in url for url in one.asked)
        page.reload()
        one.until(VERSION)


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_nothing_is_wider_than_the_screen(tab: Opening, width: int) -> None:
    one = tab(viewport={"width": width, "height": 800})
    page = one.ready()
    for summary in page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0
    page.locator("table.events tbody th a").first.click()
    page.get_by_role("button", name="Why this action?").click()
    page.get_by_role("img", name="What each feature added").wait_for()
    assert page.evaluate(over) <= 0
    one.open("#/action/" + "x" * 200)
    page.reload()
    page.get_by_text("There is no action with this id.").wait_for()
    assert page.evaluate(over) <= 0


CONTRAST = """() => {
    const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const parts = (colour) => colour.match(/[0-9.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const behind = (one) => {
        for (let at = one; at; at = at.parentElement) {
            const found = parts(getComputedStyle(at).backgroundColor);
            if (found.length === 3 || found[3] === 1) return found;
        }
        return [255, 255, 255];
    };
    const unseen = '.hidden, .skip, [hidden], dialog, option, noscript';
    const poor = [];
    let looked = 0;
    for (const one of document.querySelectorAll('body *')) {
        const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        const style = getComputedStyle(one);
        if (!own || !one.getBoundingClientRect().width || one.closest(unseen) || style.visibility === 'hidden') continue;
        const drawn = one instanceof SVGElement;
        const front = light(parts(drawn ? style.fill : style.color));
        const back = light(behind(drawn ? one.ownerSVGElement.parentElement : one));
        const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
        looked += 1;
        if (ratio < 4.5) poor.push([one.tagName, one.textContent.slice(0, 40), ratio.toFixed(2)]);
    }
    return [looked, poor];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(tab: Opening, scheme: str) -> None:
    one = tab(color_scheme=scheme)
    page = one.ready()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 20, 23)"
    assert dark is (scheme == "dark")
    for summary in page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    looked, poor = page.evaluate(CONTRAST)
    assert looked > 100 and poor == []


def test_the_theme_can_be_chosen_and_is_kept(tab: Opening) -> None:
    one = tab(color_scheme="light")
    page = one.ready()
    colour = "getComputedStyle(document.body).backgroundColor"
    bright = page.evaluate(colour)
    button = page.locator("#theme")
    button.click()
    assert button.get_attribute("aria-label") == "Theme: light" and page.evaluate(colour) == bright
    button.click()
    assert button.get_attribute("aria-label") == "Theme: dark" and page.evaluate(colour) != bright
    page.reload()
    one.until("document.documentElement.dataset.theme === 'dark'")


def test_it_has_landmarks_and_is_calm_for_screen_readers(tab: Opening) -> None:
    one = tab()
    page = one.ready()
    for role in ("banner", "main", "contentinfo", "search", "alert"):
        assert page.get_by_role(role).count() == 1, role
    unnamed = page.evaluate("""() => [...document.querySelectorAll('main input, main select, #search input')]
        .filter((one) => !one.labels?.length && !one.getAttribute('aria-label')).map((one) => one.id)""")
    assert unnamed == []
    page.evaluate("""() => {
        window.told = 0;
        const watch = new MutationObserver(() => { window.told += 1; });
        for (const one of document.querySelectorAll('[aria-live], [role=alert]')) {
            watch.observe(one, { childList: true, characterData: true, subtree: true });
        }
    }""")
    version = "document.getElementById('freshness-text').textContent"
    before = page.evaluate(version)
    one.until("(before) => document.getElementById('freshness-text').textContent !== before", before)
    assert page.evaluate("window.told") == 0  # it was updated, and nobody was interrupted


def test_motion_is_left_out_where_it_is_not_wanted(tab: Opening) -> None:
    for wanted, names in (("no-preference", "pulse"), ("reduce", "none")):
        page = tab(reduced_motion=wanted).ready()
        assert page.evaluate("getComputedStyle(document.querySelector('.pulse')).animationName") == names
