// The dashboard: asks the service every two seconds, shows the page that the address names, and says so when nobody answers.

import { actionPage } from "./action.js";
import { beginKeys, get, query } from "./api.js";
import { el, say, swap } from "./dom.js";
import { eventPage } from "./events.js";
import { time } from "./format.js";
import { actionLink, overview } from "./overview.js";

const EVERY = 2000, HIDDEN = 30000, SLOWEST = 15000;
const main = document.getElementById("main");
const trouble = document.getElementById("trouble");
let minutes = 60, page = null, last = null, answered = null, failures = 0, timer = 0, asking = false;

// ---- pages

function wantedPage() {
  const [, kind, id] = location.hash.match(/^#\/(action|event)\/(.+)$/) || [];
  let name = "";
  try {
    name = id === undefined ? "" : decodeURIComponent(id);
  } catch {
    name = id;
  }
  if (kind === "action") return () => actionPage(name);
  if (kind === "event") return () => eventPage(name);
  return () => overview(chooseWindow);
}

function turn(first) {
  if (!first && !location.hash.startsWith("#/") && location.hash !== "") return;
  page?.stop();
  page = wantedPage()();
  document.title = page.title === "Live decisions" ? "manyarms" : `${page.title} – manyarms`;
  swap(main, page.node);
  if (last) page.update(last);
  if (!first) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

function chooseWindow(wanted) {
  minutes = wanted;
  ask();
}

// ---- asking

async function ask() {
  if (asking) {
    again(200);
    return;
  }
  asking = true;
  const wanted = minutes;
  try {
    last = await get(query("/v1/dashboard", { minutes: wanted }));
    answered = new Date();
    if (failures) tell("The service answers again.");
    failures = 0;
    trouble.replaceChildren();
    document.body.classList.remove("stale");
    news(last);
    page.update(last);
  } catch (error) {
    failures += 1;
    failed(error);
  }
  asking = false;
  freshness();
  again(wanted !== minutes ? 0 : failures ? Math.min(SLOWEST, EVERY * 2 ** Math.min(failures - 1, 3)) : document.hidden ? HIDDEN : EVERY);
}

function again(after) {
  clearTimeout(timer);
  timer = setTimeout(ask, after);
}

function failed(error) {
  const since = answered ? `since ${time(answered / 1000)}` : "yet";
  const said = error.status ? `The service refuses: ${error.message}` : `No answer ${since}.`;
  document.body.classList.add("stale");
  const words = `${said} ${answered ? "The figures below are old. " : ""}Trying again …`;
  if (trouble.textContent !== words) swap(trouble, el("p", {}, el("strong", {}, said), ` ${answered ? "The figures below are old. " : ""}Trying again …`));
}

// ---- what is said aloud, which is little

let alarms = null;
function news(body) {
  const red = body.alarms.filter((one) => one.level === "red").map((one) => one.text);
  if (alarms !== null && red.join("|") !== alarms) tell(red.length ? `Alarm: ${red.join(". ")}` : "No alarms any more.");
  alarms = red.join("|");
}

function tell(text) {
  say(document.getElementById("news"), text);
}

function freshness() {
  const node = document.getElementById("freshness-text");
  const age = answered ? (Date.now() - answered) / 1000 : null;
  say(node, failures ? "No answer" : age === null ? "Loading" : age < 5 ? `Live, ${time(answered / 1000)}` : `Updated ${Math.round(age)} s ago`);
  document.getElementById("freshness").classList.toggle("lost", failures > 0);
}

// ---- the search box, the theme, the beginning

function beginSearch() {
  const field = document.getElementById("search-text"), list = document.getElementById("search-found");
  let typing = 0;
  field.addEventListener("input", () => {
    clearTimeout(typing);
    const wanted = field.value.trim();
    if (!wanted) return swap(list);
    typing = setTimeout(async () => {
      try {
        const found = await get(query("/v1/catalogue", { search: wanted, limit: 10 }));
        swap(list, ...found.actions.map((one) => el("option", { value: one.id ?? one.row })));
      } catch {
        swap(list); // the page says by itself where nobody answers
      }
    }, 200);
  });
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    location.hash = actionLink(field.value.trim());
    field.value = "";
    swap(list);
  });
}

function beginTheme() {
  const button = document.getElementById("theme"), order = ["auto", "light", "dark"];
  let theme = "auto";
  try {
    theme = order.includes(localStorage.getItem("manyarms-theme")) ? localStorage.getItem("manyarms-theme") : "auto";
  } catch {
    // no storage: the system's theme
  }
  const show = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    swap(button, el("span", {}, "Theme: "), theme);
    button.setAttribute("aria-label", `Theme: ${theme}`);
  };
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    try {
      localStorage.setItem("manyarms-theme", theme);
    } catch {
      // not kept
    }
    show();
  });
  show();
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => turn(false));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) again(0);
});
setInterval(freshness, 1000);
beginTheme();
beginKeys();
beginSearch();
turn(true);
ask();
