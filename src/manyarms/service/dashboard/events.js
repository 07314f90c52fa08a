// Events: the newest with filters, and the page of one of them with the reasons for its action.

import { contributions, figure, legend } from "./charts.js";
import { get, query } from "./api.js";
import { cells, el, rows, say, section, swap, table } from "./dom.js";
import { count, number, percent, plural, signed, time } from "./format.js";

const eventLink = (id) => `#/event/${encodeURIComponent(id)}`;
const actionLink = (id) => `#/action/${encodeURIComponent(id)}`;
const COLUMNS = [
  ["Event", "The id of the event."], ["Time", "When it was decided."], ["Arm", "Which agent or policy decided."], ["Action", "What was done; of several, the first."],
  ["Propensity", "How likely the action was, ~ where that is an estimate.", "number"], ["Reward", "What it has earned by now.", "number"], ["", "Whether it was explored, held out, deferred or erased."],
];

const tags = (one) => [
  one.greedy === false && "explored", one.held_out && "held out", !one.active && "not active", one.erased && "erased", one.actions.length > 1 && `${one.actions.length} actions`,
].filter(Boolean).join(", ");

const chance = (one) => (one.propensity === null ? "–" : (one.propensity_kind === "estimated" ? "~" : "") + number(one.propensity));

/** fixed: filters that belong to the page, such as its action. */
export function eventsSection(fixed = {}) {
  const node = section("Recent events", null, { id: "events" });
  const arm = el("select", { id: "filter-arm" }, el("option", { value: "" }, "all arms"));
  const action = el("input", { id: "filter-action", type: "text", autocomplete: "off", maxlength: 256, placeholder: "any" });
  const text = el("input", { id: "filter-text", type: "search", autocomplete: "off", maxlength: 256, placeholder: "part of an id or unit" });
  const rewarded = el("input", { id: "filter-rewarded", type: "checkbox" });
  const labelled = (label, field) => el("div", { class: "field" }, el("label", { for: field.id }, label), field);
  const filters = el("form", { class: "filters", "aria-label": "Filters of events", onsubmit: (event) => event.preventDefault() },
    labelled("Arm", arm), fixed.action === undefined && labelled("Action", action), labelled("Text", text),
    el("div", { class: "field check" }, rewarded, el("label", { for: "filter-rewarded" }, "only with a reward")));
  const made = table("Recent events", COLUMNS, { class: "events" });
  const told = el("p", { class: "calm", role: "status" });
  const more = el("button", { type: "button" }, "Show older events");
  node.append(filters, told, made.wrap, el("div", { class: "buttons" }, more));

  let shown = [], next = null, older = false, stopped = false, asking = null, busy = false;
  const wanted = () => ({ arm: arm.value, action: fixed.action ?? action.value.trim(), id: text.value.trim(), rewarded: rewarded.checked });

  function draw() {
    rows(made.body, shown, () => el("tr", {}, el("th", { scope: "row" }, el("a"))), (row, one) => {
      const link = row.querySelector("th a");
      say(link, one.id);
      link.setAttribute("href", eventLink(one.id));
      cells(row, [undefined, time(one.at), one.arm, undefined, chance(one), one.reward === null ? "–" : number(one.reward), tags(one)], made.kinds);
      const cell = row.children[3];
      const to = cell.querySelector("a") || cell.appendChild(el("a"));
      say(to, one.actions.length ? one.actions[0] : "–");
      if (one.actions.length) to.setAttribute("href", actionLink(one.actions[0]));
      else to.removeAttribute("href");
    });
    more.hidden = next === null;
    made.wrap.hidden = !shown.length;
  }

  async function load(before) {
    asking?.abort();
    asking = new AbortController();
    const mine = asking;
    busy = true;
    try {
      const found = await get(query("/v1/events", { limit: 25, before, ...wanted() }), mine.signal);
      if (stopped || mine !== asking) return;
      shown = before ? shown.concat(found.events) : found.events;
      next = found.next;
      const filtered = Object.values({ ...wanted(), action: fixed.action === undefined ? action.value : "" }).some(Boolean);
      say(told, shown.length ? "" : filtered ? "No event fits these filters" + (next === null ? "." : " among the newest: there may be older ones.") : "Nothing was decided yet.");
      told.hidden = Boolean(shown.length);
      draw();
    } catch (error) {
      if (error.name === "AbortError" || stopped) return;
      shown = [];
      next = null;
      told.hidden = false;
      say(told, error.status === 404 ? "There is no such action." : error.status ? error.message : "The service does not answer.");
      draw();
    } finally {
      if (mine === asking) busy = false;
    }
  }

  let typing = 0;
  const changed = () => {
    clearTimeout(typing);
    older = false;
    busy = true; // nothing else is asked for meanwhile
    typing = setTimeout(() => load(), 250);
  };
  for (const field of [arm, action, text, rewarded]) field.addEventListener("input", changed);
  more.addEventListener("click", () => {
    older = true; // what was asked for stays as it is
    load(next);
  });
  load();
  return {
    node,
    update(body) {
      const names = body.arms.concat("baseline");
      if (arm.dataset.key !== names.join("|")) {
        arm.dataset.key = names.join("|");
        const value = arm.value;
        swap(arm, el("option", { value: "" }, "all arms"), ...names.map((name) => el("option", { value: name }, name)));
        arm.value = names.includes(value) ? value : "";
      }
      if (!older && !busy && !made.body.contains(document.activeElement)) load(); // what somebody is about to follow does not move away
    },
    stop: () => {
      stopped = true;
      asking?.abort();
    },
  };
}

// ---- one event

export function eventPage(id) {
  const facts = el("dl", { class: "facts wide" });
  const rewards = table("Rewards", [["Reward", "Its id."], ["Action", ""], ["Value", "", "number"], ["Came", "", "number"]]);
  const context = table("Context", [["Entry", ""], ["Value", "", "number"]]);
  const reasons = el("div", { class: "reasons", "aria-live": "polite" });
  const ask = el("button", { type: "button", class: "main" }, "Why this action?");
  const problem = el("p", { class: "calm" });
  const reward = section("Rewards", "What came for it so far; several count together as the store was told.");
  const seen = section("Context", "What the decision was made from.");
  const why = section("Why", "What each feature added to the score of the action, by what all actions share (root) and by its own data (leaf).");
  const noRewards = el("p", { class: "calm" });
  reward.append(noRewards, rewards.wrap);
  seen.append(context.wrap);
  for (const one of [reward, seen, why]) one.classList.add("card");
  why.append(el("div", { class: "buttons" }, ask), reasons);
  const below = el("div", { hidden: true, class: "column" }, el("div", { class: "card" }, facts), why, el("div", { class: "pair" }, reward, seen));
  const node = el("div", {}, el("p", {}, el("a", { href: "#/" }, "← Overview")), el("h1", { class: "id" }, id), el("p", { class: "about" }, "One decision, as the log has it."), problem, below);
  let stopped = false, names = [], drawn = null;

  async function load() {
    try {
      const one = await get(`/v1/events/${encodeURIComponent(id)}`);
      if (stopped) return;
      problem.hidden = true;
      below.hidden = false;
      show(one);
    } catch (error) {
      if (stopped) return;
      problem.hidden = false;
      say(problem, error.status === 404 ? "There is no such event: it was never decided here, or it was erased or compacted." : error.message);
    }
  }

  function show(one) {
    const key = JSON.stringify([one, names]);
    if (drawn === key) return;
    drawn = key;
    const link = (action) => el("a", { href: actionLink(action) }, action);
    const pairs = [
      ["Action", one.actions.length ? el("span", {}, ...one.actions.flatMap((action, place) => [place ? ", " : "", link(action)])) : "–", "What was done, best first."],
      ["Decided", time(one.at), "When the decision came to the store."], ["Arm", one.arm, "Which agent or policy decided."], ["Version", count(one.version), "The state that decided."],
      ["Propensity", one.propensity === null ? "not known (yet)" : `${number(one.propensity)}, ${one.propensity_kind}`, "How likely the first action was, over all arms."],
      ["Unit", one.unit ?? "none", "A user or session that keeps its arm."], ["Active", one.active ? "yes" : "no: not activated", "A deferred decision counts once it is activated."],
      ["Explored", one.details.greedy === undefined ? "not known" : one.details.greedy ? "no, it looked best" : "yes", "Whether another action looked better."],
      ["Allowed", one.candidates ? plural(one.candidates.length, "candidate") : one.exclude ? `all but ${one.exclude.length}` : "all actions", "Which actions could be chosen."],
    ];
    for (const [arm, looked] of Object.entries(one.details.shadows || {})) pairs.push([`${arm} would`, looked[0] === null ? "could not tell" : looked[0] === one.actions[0] ? "do the same" : link(looked[0]), "What a shadow would have done."]);
    swap(facts, ...pairs.map(([name, value, title]) => el("div", { title }, el("dt", {}, name), el("dd", {}, value))));
    say(noRewards, one.rewards.length ? "" : "None yet.");
    rewards.wrap.hidden = !one.rewards.length;
    rows(rewards.body, one.rewards, () => el("tr"), (row, given) => cells(row, [given.id || "(the reward)", given.action, number(given.value), time(given.at)], rewards.kinds));
    const rowOf = Array.isArray(one.context?.[0]) ? one.context[0] : one.context || [];
    const labelled = rowOf.map((value, place) => [names[place] || `x[${place}]`, number(value, 6)]).slice(0, 500);
    rows(context.body, labelled, () => el("tr"), (row, pair) => cells(row, pair, context.kinds));
  }

  ask.addEventListener("click", async () => {
    ask.disabled = true;
    swap(reasons, el("p", { class: "calm" }, "Making the decision again …"));
    try {
      const found = await get(`/v1/events/${encodeURIComponent(id)}/why`);
      swap(reasons, ...told(found));
    } catch (error) {
      swap(reasons, el("p", { class: "calm" }, error.status ? error.message : "The service does not answer."));
    }
    ask.disabled = false;
  });

  load();
  return {
    node,
    title: `Event ${id}`,
    update(body) {
      if (!names.length) names = body.features.entries.map((one) => one.name);
      load();
    },
    stop: () => {
      stopped = true;
    },
  };
}

function told(found) {
  const why = found.explanation;
  const said = [];
  if (!why) return [el("p", {}, found.unexplained || "There is no score to explain.")];
  said.push(el("p", {}, `The ${why.quantity} of ${found.action} was ${number(why.score)}${why.sd === null ? "" : ` ± ${number(why.sd)}`}${found.propensity === null ? "" : `; it had a chance of ${percent(found.propensity)}`}.`));
  if (found.greedy) said.push(el("p", {}, `${found.greedy.action} looked best${found.greedy.score === null ? "" : ` (${number(found.greedy.score)})`}: this was exploration.`));
  if (why.root_share !== null && why.root_share !== undefined) said.push(el("p", {}, `What all actions share (root) makes ${percent(why.root_share)} of the score${why.root_variance_share === null ? "" : ` and ${percent(why.root_variance_share)} of its variance`}.`));
  if (!found.exact) said.push(el("p", {}, `By the state of version ${count(found.explained_by)}: that of version ${count(found.version)}, which decided, is gone.`));
  const features = why.features.slice(0, 20);
  const split = features.some((one) => one.root !== undefined);
  const chart = figure("What each feature added", [["Feature", ""], ["Value", "", "number"], ["Adds", "", "number"], ["Root", "", "number"], ["Leaf", "", "number"]]);
  setTimeout(() => chart.show({
    draw: contributions(features),
    told: features.slice(0, 5).map((one) => `${one.name} adds ${signed(one.contribution)}`).join(", "),
    caption: why.features.length > features.length ? `The ${features.length} largest of ${why.features.length} features.` : "All features, the largest first.",
    table: () => why.features.map((one) => [one.name, number(one.value), signed(one.contribution), one.root === undefined ? "–" : signed(one.root), one.leaf === undefined ? "–" : signed(one.leaf)]),
  }));
  said.push(el("div", {}, split ? legend([["Root: shared by all actions", 0, "bar"], ["Leaf: the action's own data", 1, "bar"]]) : legend([["What the feature adds", 1, "bar"]]), chart.node));
  return said;
}
