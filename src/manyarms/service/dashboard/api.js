// Calls of the service: with the key of this tab, one question at a time, and what is wrong in words.

import { el, swap } from "./dom.js";

const KEY = "manyarms-key";

export class Refused extends Error {
  constructor(status, detail) {
    super(detail || `The service answered with status ${status}.`);
    this.status = status;
  }
}

const waiting = [];

/** Ask for a key until one is given; whoever waits for it goes on then. */
export function askForKey(reason) {
  const dialog = document.getElementById("key-dialog");
  if (reason) document.getElementById("key-reason").textContent = reason;
  if (!dialog.open) {
    dialog.showModal();
    document.getElementById("key-text").focus();
  }
  return new Promise((done) => waiting.push(done));
}

export function beginKeys() {
  const dialog = document.getElementById("key-dialog");
  dialog.addEventListener("close", () => {
    if (!waiting.length) return; // a key was given
    const again = el("button", { type: "button", onclick: () => askForKey() }, "Enter a key");
    swap(document.getElementById("trouble"), el("p", {}, el("strong", {}, "This service asks for a key. "), again));
  });
  document.getElementById("key-form").addEventListener("submit", () => {
    const field = document.getElementById("key-text");
    sessionStorage.setItem(KEY, field.value.trim());
    field.value = "";
    swap(document.getElementById("trouble"));
    for (const done of waiting.splice(0)) done();
  });
}

/** GET a path; asks for a key where one is needed. Raises Refused, or TypeError where nobody answers. */
export async function get(path, signal) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const timeout = AbortSignal.timeout(15000);
    const answer = await fetch(path, {
      headers: key ? { Authorization: `Bearer ${key}`, Accept: "application/json" } : { Accept: "application/json" },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      cache: "no-store",
    });
    if (answer.ok) return answer.json();
    const problem = await answer.json().catch(() => ({}));
    if (answer.status === 401 || (answer.status === 403 && key)) {
      const reason = key ? `That key does not do: ${problem.detail || "it is not known"}` : undefined;
      await askForKey(reason);
      continue;
    }
    throw new Refused(answer.status, problem.detail);
  }
}

export const query = (path, values) => {
  const used = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return used.length ? `${path}?${new URLSearchParams(used)}` : path;
};
