// The first page: what happens now, whether it is worth it, and whether anything is wrong.

import { figure, forest, histogram, legend, overTime } from "./charts.js";
import { cells, el, explained, rows, say, section, swap, table } from "./dom.js";
import { eventsSection } from "./events.js";
import { bytes, count, fixed, hour, number, percent, plural, rough, seconds, short, signed, time } from "./format.js";

export const actionLink = (id) => `#/action/${encodeURIComponent(id)}`;

// ---- tiles

function tiles() {
  const wanted = [
    ["decisions", "Decisions a minute", "Decisions that came to the store in the last 5 minutes, divided by 5."],
    ["rewards", "Rewards a minute", "Rewards that came to the store in the last 5 minutes, divided by 5."],
    ["mean", "Mean reward", "Of the decisions of the last 24 hours; one without a reward counts with the default."],
    ["version", "Version", "How many chunks of the log have been learned; every decision names the version that made it."],
    ["lag", "Learner lag", "How long the oldest entry of the log has been waiting to be learned."],
    ["p99", "Decision latency", "99 of 100 decisions of this process in the last 5 minutes were answered at least as fast (p99)."],
  ];
  const nodes = {};
  const list = el("dl", { class: "tiles" });
  for (const [name, label, text] of wanted) {
    const value = el("dd", { class: "value" }, "–"), note = el("dd", { class: "note" });
    nodes[name] = { value, note };
    list.append(el("div", { class: "tile", id: `tile-${name}` }, el("dt", { title: text }, label), value, note, el("dd", { class: "hidden" }, text)));
  }
  const show = (name, value, note) => {
    say(nodes[name].value, value);
    say(nodes[name].note, note || "");
  };
  return {
    node: el("section", { "aria-label": "Now" }, list),
    update(body) {
      show("decisions", number(body.rates.decisions), `${count(body.day.decisions)} in 24 h`);
      show("rewards", number(body.rates.rewards), `${count(body.day.rewards)} in 24 h`);
      show("mean", number(body.mean_reward), rewardNote(body));
      show("version", count(body.version), `${plural(body.learned, "row")} learned`);
      show("lag", body.lag.seconds === null ? "–" : body.lag.entries ? seconds(body.lag.seconds) : "none", body.lag.entries === null ? "the store does not answer" : `${plural(body.lag.entries, "entry", "entries")} waiting`);
      const slow = deciding(body.latency);
      show("p99", slow ? rough(slow.p99) : "–", slow ? `p99 of ${plural(slow.count, "call")}, p50 ${rough(slow.p50)}` : "no decisions here in 5 min");
    },
  };
}

function rewardNote(body) {
  const lift = body.report.lift;
  if (lift) return `${signed(lift.mean)} over the hold-out`;
  return body.settings.default === null ? "of the events with a reward" : `default ${number(body.settings.default)}`;
}

/** The call that decides, and is made most often. */
function deciding(latency) {
  const found = Object.entries(latency).filter(([route]) => /\/(decide|rank)$/.test(route));
  return found.map(([, one]) => one).sort((a, b) => b.count - a.count)[0];
}

// ---- alarms and checks

const WORDS = { green: "Good", amber: "Look", red: "Alarm", grey: "Not checked" };
const MARKS = { green: "✓", amber: "!", red: "✕", grey: "–" };

export function badge(level) {
  return el("span", { class: `badge ${level}` }, el("span", { "aria-hidden": "true" }, MARKS[level]), ` ${WORDS[level]}`);
}

function alarms() {
  const list = el("ul", { class: "alarms" });
  const node = section("Alarms", null, { id: "alarms" });
  const calm = el("p", { class: "calm" });
  node.append(calm, list);
  return {
    node,
    update(body) {
      const found = body.alarms;
      node.classList.toggle("quiet", !found.length);
      say(calm, found.length ? "" : "Nothing to complain of.");
      calm.hidden = Boolean(found.length);
      rows(list, found, () => el("li"), (row, one) => {
        row.className = one.level;
        const key = `${one.level}|${one.text}`;
        if (row.dataset.key !== key) {
          row.dataset.key = key;
          swap(row, badge(one.level), el("span", {}, one.text));
        }
      });
    },
  };
}

function drifted(arm, one) {
  const name = `Drift of ${arm}`;
  if (!one.judged) return [name, "grey", one.alarms ? "No rewards were judged yet." : "Not watched: counts need a range of rewards."];
  const last = one.notices[one.notices.length - 1];
  const level = one.notices.some((notice) => notice.by === "model-free") ? "red" : last ? "amber" : "green";
  const said = last ? `${last.text}${one.at === null ? "" : `, at ${time(one.at)}`}` : "rewards are what was predicted";
  return [name, level, `${plural(one.judged, "row")} judged: ${said}. At most one false alarm in ${count(one.mean_time)} rows, on average.`];
}

function checkList(body) {
  const found = [];
  const ratio = body.report.sample_ratio;
  if (!ratio) found.push(["Sample ratio", "grey", "There is one arm: nothing is shared."]);
  else {
    const told = ratio.arms.map((arm) => `${arm.arm}${arm.held_out ? " (hold-out)" : ""} got ${percent(arm.events / Math.max(1, ratio.events))} (should be ${percent(arm.share)})`).join(", ");
    found.push(["Sample ratio", ratio.alarm === null ? "green" : "red", `${told}; p = ${number(ratio.p_value, 2)} at any time, from ${plural(ratio.events, "event")}.`]);
  }
  const checks = Object.entries(body.report.propensities);
  if (!checks.length) found.push(["Propensities", "grey", "No rule here knows its probabilities exactly, or nothing is settled yet."]);
  for (const [arm, one] of checks) {
    const said = one.alarm ? `they are ${one.alarm.side}, seen at event ${count(one.alarm.event)}` : "no sign that they are wrong";
    found.push([`Propensities of ${arm}`, one.alarm ? "red" : "green", `Mean weight of the greedy action ${number(one.mean_weight)} (1 in the long run) of ${plural(one.events, "event")}: ${said}.`]);
  }
  found.push(...Object.entries(body.report.drift ?? {}).map(([arm, one]) => drifted(arm, one)));
  const warnings = body.features.warnings;
  if (!body.features.contexts) found.push(["Feature coverage", "grey", "No contexts were seen yet."]);
  else found.push(["Feature coverage", warnings.length ? "amber" : "green", warnings.length ? `${plural(warnings.length, "warning")}: ${warnings[0]}${warnings.length > 1 ? ", …" : ""}` : `Nothing strange in ${plural(body.features.entries.length + body.features.hidden, "entry", "entries")} of ${plural(body.features.contexts, "context")}.`]);
  const lag = body.lag;
  const late = lag.seconds !== null && lag.seconds > 30;
  found.push(["Learning", lag.seconds === null ? "grey" : late ? "red" : "green", lag.seconds === null ? "The store does not answer." : late ? `${count(lag.entries)} entries wait, the oldest for ${seconds(lag.seconds)}.` : `Up to date${lag.here ? ", and this process is the learner" : ""}.`]);
  const skipped = Object.entries(body.report.skipped).filter(([, number_]) => number_);
  const used = body.report.events - skipped.reduce((sum, [, number_]) => sum + number_, 0);
  if (body.report.unusable) found.push(["Certificates", "amber", `No values: ${body.report.unusable}.`]);
  else found.push(["Certificates", used || !body.report.events ? "green" : "amber", `${count(used)} of ${plural(body.report.events, "settled event")} can be weighted${skipped.length ? `; not: ${skipped.map(([name, number_]) => `${count(number_)} ${name.replace("_", " ")}`).join(", ")}` : ""}.`]);
  return found;
}

function checks() {
  const node = section("Checks", "Tests that run all the time, and stay right however often one looks.", { id: "checks" });
  const list = el("ul", { class: "checks" });
  node.append(list, explained([
    ["Sample ratio", "Whether traffic reaches the arms in the shares that were deployed. p is valid at any time: a false alarm, ever, has probability 0.001."],
    ["Propensities", "Whether logged probabilities are right: weights of the greedy action have the mean 1, if they are."],
    ["Drift", "Whether rewards are still what each agent predicts, overall and per action. Red: whatever the noise. Amber: by the agent's model alone, whose noise may be set too small."],
    ["Feature coverage", "Whether contexts have entries that never change, never come, or are far from what was seen before."],
    ["Learning", "Whether what came has been learned. A process that holds a lease learns for all."],
    ["Certificates", "Events are settled when their waiting time is over. Those with exact propensities can be used to value other policies."],
  ]));
  return {
    node,
    update(body) {
      rows(list, checkList(body), () => el("li"), (row, [name, level, text]) => {
        const key = JSON.stringify([name, level, text]);
        if (row.dataset.key === key) return;
        row.dataset.key = key;
        swap(row, badge(level), el("span", {}, el("strong", {}, name), el("br"), text));
      });
    },
  };
}

// ---- traffic

const WINDOWS = [[60, "1 hour"], [360, "6 hours"], [1440, "24 hours"]];

function traffic(choose) {
  const node = section("Traffic", null, { id: "traffic" });
  const picked = el("fieldset", { class: "windows" }, el("legend", { class: "hidden" }, "How far back"));
  for (const [minutes, label] of WINDOWS) {
    const id = `window-${minutes}`;
    picked.append(el("input", { type: "radio", name: "window", id, value: minutes, checked: minutes === 60, onchange: () => choose(minutes) }), el("label", { for: id }, label));
  }
  const calls = figure("Decisions and rewards a minute", [["Time", "When the step began."], ["Decisions a minute", "", "number"], ["Rewards a minute", "", "number"]]);
  const earned = figure("Mean reward over time", [["Time", "When the step began."], ["Mean reward", "", "number"]]);
  const names = el("div", { class: "names" });
  node.firstElementChild.after(picked);
  node.append(
    el("div", { class: "pair" },
      el("div", { class: "card" }, el("h3", {}, "Decisions and rewards a minute"), legend([["Decisions", 0], ["Rewards", 1]]), calls.node),
      el("div", { class: "card" }, el("h3", {}, "Mean reward of decisions"), names, earned.node)),
  );
  return {
    node,
    update(body) {
      const { start, step, decisions, rewards, earned: means } = body.series;
      const a_minute = (values) => values.map((value) => (value * 60) / step);
      const shown = { start, step, format: (value) => number(value), now: body.at };
      const perStep = step === 60 ? "minute" : `${step / 60} minutes`;
      calls.show({
        draw: overTime({ ...shown, series: [{ name: "Decisions", values: a_minute(decisions), area: true }, { name: "Rewards", values: a_minute(rewards), look: 1 }] }),
        told: `From ${hour(start)} to now, ${count(sum(decisions))} decisions and ${count(sum(rewards))} rewards.`,
        caption: `One point for each ${perStep}; the last one is not over yet.`,
        table: () => decisions.map((value, place) => [time(start + place * step), number((value * 60) / step), number((rewards[place] * 60) / step)]).reverse(),
      });
      const several = Object.keys(means.arms).length > 1 ? Object.entries(means.arms).slice(0, 6) : [];
      const series = several.length ? several.map(([name, values], look) => ({ name, values, look })) : [{ name: "Mean reward", values: means.mean, look: 2 }];
      const key = series.map((one) => one.name).join("|");
      if (names.dataset.key !== key) {
        names.dataset.key = key;
        swap(names, legend(series.map((one) => [one.name, one.look])));
      }
      const known = means.mean.filter((value) => value !== null);
      earned.show({
        draw: overTime({ ...shown, start: means.start, step: means.step, series, least: Math.min(0, ...known), waits: body.settings.wait }),
        told: known.length ? `Between ${number(Math.min(...known))} and ${number(Math.max(...known))}, last ${number(known[known.length - 1])}.` : "Nothing was decided.",
        caption: `By the time of the decision, ${plural(means.step / 60, "minute")} a point. Shaded: decisions that may still get a reward, up to ${seconds(body.settings.wait)} later.`,
        table: () => means.mean.map((value, place) => [time(means.start + place * means.step), number(value)]).reverse(),
      });
    },
  };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

// ---- values

function values() {
  const node = section("Is it worth it?", "Values with 95 % intervals that hold at all times at once: looking often does not make them wrong.", { id: "values" });
  const columns = [["Of", ""], ["Events", "Settled events that it rests on.", "number"], ["Mean", "", "number"], ["At least", "", "number"], ["At most", "", "number"]];
  const means = figure("Mean reward by arm", columns);
  const gains = figure("Differences", columns);
  const none = el("p", { class: "calm" });
  const first = el("div", { class: "card" }, el("h3", {}, "Mean reward by arm"), means.node);
  const second = el("div", { class: "card" }, el("h3", {}, "Differences: lift and gain"), gains.node);
  node.append(none, el("div", { class: "pair" }, first, second), explained([
    ["Value of an arm", "The mean reward of the settled events that the arm decided itself."],
    ["Shadow", "An arm that only looks on: what it would have earned, by weighting events with its own chances of what was done."],
    ["Lift over the hold-out", "How much more a decision earns than one of the part of the traffic that never gets anything else."],
    ["Gain of a challenge", "How much more a challenger would earn than what is deployed; it is promoted once the lower end is above its margin."],
  ]));
  const tabled = (lines) => () => lines.map((one) => [one.name, count(one.events), fixed(one.mean), fixed(one.low), fixed(one.high)]);
  return {
    node,
    update(body) {
      const report = body.report;
      const deployed = body.deployment;
      const part = (name) => {
        const share = deployed.shares?.[name];
        if (deployed.holdout_arm === name && deployed.holdout) return `hold-out, ${percent(deployed.holdout)} of the traffic`;
        if (name === "baseline") return share ? `what the application does, ${percent(share)}` : "what the application does";
        return share === undefined ? "not deployed now" : `${percent(share * (1 - (deployed.holdout || 0)))} of the traffic`;
      };
      const own = Object.entries(report.values).map(([name, one], look) => ({ name, note: part(name), look, ...one }));
      const shadows = Object.entries(report.shadows).filter(([, one]) => one.value).map(([name, one]) => ({ name: `${name}, as a shadow`, note: `would differ in ${percent(one.differs / Math.max(1, one.events))} of events`, look: 6, mark: "diamond", ...one.value }));
      const lines = [...own, ...shadows];
      const range = body.settings.reward_range;
      first.hidden = !lines.length;
      if (lines.length) {
        means.show({
          draw: forest(lines, { floor: range && range[0], ceiling: range && range[1] }),
          told: lines.map((one) => `${one.name}: ${number(one.mean)}, between ${number(one.low)} and ${number(one.high)}`).join(". "),
          caption: "Dots: means of what was earned; diamonds: what shadows would have earned. Lines: from “at least” to “at most”.",
          table: tabled(lines),
        });
      }
      const differences = [];
      if (report.lift) differences.push({ name: "Lift over the hold-out", note: `${plural(report.lift.events, "event")}, ${percent(report.lift.share)} held out`, look: 2, ...report.lift });
      for (const one of report.challenges) differences.push({ name: `Gain of ${one.name}`, note: `challenge ${one.number}: ${one.state}`, look: 3, mark: "diamond", mean: one.gain, low: one.gain_low, high: null, events: one.events });
      second.hidden = !differences.length;
      if (differences.length) {
        gains.show({
          draw: forest(differences, { zero: true, format: signed }),
          told: differences.map((one) => `${one.name}: ${signed(one.mean)}, at least ${signed(one.low)}`).join(". "),
          caption: "To the right of the line at 0 is better. A gain has no upper end: only “better” has to be shown.",
          table: tabled(differences),
        });
      }
      const said = report.unusable ? `There are no values: ${report.unusable}.` : lines.length ? "" : `Nothing is settled yet: an event is when its waiting time, ${seconds(body.settings.wait)}, is over.`;
      say(none, said);
      none.hidden = !said;
    },
  };
}

// ---- exploration and coverage

function meter(label, text) {
  const value = el("span", { class: "value" }, "–"), bar = el("meter", { min: 0, max: 1, value: 0, "aria-label": label });
  return {
    node: el("div", { class: "meter" }, el("p", {}, el("span", {}, label), value), bar, el("p", { class: "note" }, text)),
    show(share, more) {
      say(value, share === null ? "–" : percent(share) + (more ? ` ${more}` : ""));
      bar.value = share ?? 0;
    },
  };
}

function coverage() {
  const node = section("Exploration and the catalogue", null, { id: "coverage" });
  const parts = {
    explored: meter("Explored", "Decisions in 24 h that were not the action that looked best, where the rule knows which one did."),
    fresh: meter("New actions", "Decisions in 24 h with an action that had not been played since counting began."),
    covered: meter("Catalogue played", "Different actions played since counting began, of those that can be chosen."),
    top1: meter("To the top 1 %", "Plays that went to the most played hundredth of the catalogue."),
    top10: meter("To the top 10 %", "Plays that went to the most played tenth of the catalogue."),
  };
  const top = table("Most played actions", [["Action", ""], ["Plays", "How often it was chosen since counting began.", "number"], ["Mean reward", "Of its plays; those without a reward count with the default.", "number"], ["Last played", "", "number"]]);
  const since = el("p", { class: "about" });
  node.append(since, el("div", { class: "pair" },
    el("div", { class: "card meters" }, el("h3", {}, "Shares"), ...Object.values(parts).map((one) => one.node)),
    el("div", { class: "card" }, el("h3", {}, "Most played actions"), top.wrap)));
  return {
    node,
    update(body) {
      const seen = body.coverage;
      say(since, body.since ? `Counted since ${time(body.since)}: the last day, and at most 100,000 decisions from before the service started.` : "Nothing was decided yet.");
      parts.explored.show(body.exploration.share);
      parts.fresh.show(body.exploration.new);
      parts.covered.show(seen.share, seen.alive ? `(${short(seen.played)} of ${short(seen.alive)})` : "");
      parts.top1.show(seen.top_1);
      parts.top10.show(seen.top_10);
      rows(top.body, seen.top, () => el("tr", {}, el("th", { scope: "row" }, el("a"))), (row, one) => {
        const link = row.querySelector("a");
        say(link, one.action);
        link.setAttribute("href", actionLink(one.action));
        cells(row, [undefined, count(one.plays), fixed(one.mean), hour(one.last)], top.kinds);
      });
    },
  };
}

// ---- propensities, latency, features, store

function propensities() {
  const chart = figure("Propensities", [["From", "", "number"], ["to", "", "number"], ["exact", "", "number"], ["estimated", "", "number"]]);
  const node = el("div", { class: "card", id: "propensities" }, el("h3", {}, "Propensities"), legend([["Exact", 0, "bar"], ["Estimated", 4, "bar"]]), chart.node);
  return {
    node,
    update(body) {
      const seen = body.propensities;
      const worth = seen.effective === null ? "" : ` Weighted to a policy that plays every action alike, they are worth ${count(seen.effective)} of ${plural(seen.known, "event")}: the effective sample size.`;
      const labels = [[0, "10⁻⁸"], [4, "10⁻⁶"], [8, "10⁻⁴"], [12, "0.01"], [16, "1"]];
      chart.show({
        draw: histogram({ kinds: [{ name: "exact", values: seen.kinds.exact, look: 0 }, { name: "estimated", values: seen.kinds.estimated, look: 4 }], labels }),
        told: `${count(seen.exact)} exact, ${count(seen.estimated)} estimated, ${count(seen.none)} not known.`,
        caption: `Decisions of the last 24 h by how likely the action was that was taken, on a logarithmic scale: ${count(seen.exact)} exact, ${count(seen.estimated)} estimated, ${count(seen.none)} not known (yet).${worth}`,
        table: () => seen.kinds.exact.map((value, place) => [number(seen.edges[place], 2), number(seen.edges[place + 1], 2), count(value), count(seen.kinds.estimated[place])]).filter((row) => row[2] !== "0" || row[3] !== "0"),
      });
    },
  };
}

function latency() {
  const made = table("Latency by call", [["Call", ""], ["Calls", "Answers of this process in the last 5 minutes.", "number"], ["p50", "Half of the answers were at most as slow.", "number"], ["p95", "19 of 20 were.", "number"], ["p99", "99 of 100 were.", "number"]]);
  const none = el("p", { class: "calm" }, "No calls in the last 5 minutes.");
  const node = el("div", { class: "card", id: "latency" }, el("h3", {}, "Latency"), el("p", { class: "about" }, "Of this process, in the last 5 minutes; to within 10 %."), made.wrap, none);
  return {
    node,
    update(body) {
      const found = Object.entries(body.latency).sort((a, b) => b[1].count - a[1].count).slice(0, 12);
      none.hidden = Boolean(found.length);
      made.wrap.hidden = !found.length;
      rows(made.body, found, () => el("tr"), (row, [route, one]) => cells(row, [route.replaceAll("/", "/\u200b"), count(one.count), rough(one.p50), rough(one.p95), rough(one.p99)], made.kinds));
    },
  };
}

function features() {
  const made = table("Entries of contexts", [["Entry", ""], ["Mean", "", "number"], ["Deviation", "Standard deviation.", "number"], ["Zero", "Share of contexts in which it is 0.", "number"], ["From", "The smallest value.", "number"], ["To", "The largest value.", "number"], ["Far out", "How often it was far beyond what was seen before.", "number"]]);
  const list = el("ul", { class: "alarms" });
  const calm = el("p", { class: "calm" });
  const node = el("div", { class: "card", id: "features" }, el("h3", {}, "Feature coverage"), calm, list, el("details", { class: "numbers" }, el("summary", {}, "Show all entries"), made.wrap));
  return {
    node,
    update(body) {
      const seen = body.features;
      say(calm, seen.contexts ? `${plural(seen.entries.length + seen.hidden, "entry", "entries")} in the last ${plural(seen.contexts, "context")}.${seen.left_out ? ` ${count(seen.left_out)} contexts were too long, or of another length.` : ""}` : "No contexts were seen yet.");
      rows(list, seen.warnings, () => el("li", { class: "amber" }, badge("amber"), el("span")), (row, text) => say(row.lastElementChild, text));
      rows(made.body, seen.entries, () => el("tr"), (row, one) => cells(row, [one.name, number(one.mean), number(one.sd), percent(one.zeros), number(one.low), number(one.high), count(one.far)], made.kinds));
    },
  };
}

function store() {
  const facts = [
    ["size", "Size", "SQLite's file and its write-ahead log, or PostgreSQL's database."],
    ["position", "Entries of the log", "Decisions, rewards, operations and chunks, since the store was made."],
    ["learned", "Rows learned", "Rewards and defaults that the agents have been taught."],
    ["replaced", "Rewards replaced", "Rewards that came after the default that had stood for them, or in parts."],
    ["refused", "Rows refused", "Rows that an agent could not be taught, such as contexts of another length."],
    ["settled", "Settled events", "Events whose waiting time is over: they have entered the certificates."],
    ["units", "Units", "About how many different units (users, sessions) there were since counting began."],
    ["repeated", "Units that came before", "Of the decisions with a unit in 24 h, those of a unit that had been decided for."],
    ["held", "Held out", "Decisions in 24 h that went to the hold-out."],
    ["deferred", "Deferred", "Decisions in 24 h that count only once they are activated, and how many of them never were in time."],
    ["capped", "Capped and retired", "Actions that rest because of a cap, and that are retired."],
  ];
  const nodes = {};
  const list = el("dl", { class: "facts" });
  for (const [name, label, text] of facts) {
    nodes[name] = el("dd", {}, "–");
    list.append(el("div", { title: text }, el("dt", {}, label), nodes[name]));
  }
  const node = el("div", { class: "card", id: "store" }, el("h3", {}, "Store"), list, explained(facts.map(([, label, text]) => [label, text])));
  return {
    node,
    update(body) {
      const set = (name, text) => say(nodes[name], text);
      set("size", `${bytes(body.store.bytes)} (${body.store.kind === "sqlite" ? "SQLite" : "PostgreSQL"})`);
      set("position", count(body.store.position));
      set("learned", count(body.learned));
      set("replaced", count(body.replaced));
      set("refused", count(body.rows_refused));
      set("settled", count(body.settled));
      set("units", body.units.share ? `${short(body.units.distinct)} in ${percent(body.units.share)} of decisions` : "none");
      set("repeated", percent(body.units.repeated));
      set("held", count(body.day.held_out));
      set("deferred", body.day.deferred ? `${count(body.day.deferred)}, ${count(body.day.never_activated)} never activated` : "none");
      set("capped", `${count(body.capped)} and ${count(body.retired)}`);
    },
  };
}

// ---- all of it

export function overview(choose) {
  const inside = section("Inside", null, { id: "inside" });
  const grid = [propensities(), latency(), features(), store()];
  inside.append(el("div", { class: "pair" }, el("div", { class: "column" }, grid[0].node, grid[2].node), el("div", { class: "column" }, grid[1].node, grid[3].node)));
  const recent = eventsSection();
  const parts = [tiles(), alarms(), traffic(choose), values(), checks(), coverage(), ...grid, recent];
  const heading = el("h1", {}, "Live decisions");
  const who = el("p", { class: "about" });
  const contents = el("nav", { "aria-label": "On this page", class: "contents" }, el("ul", {}, ...[["traffic", "Traffic"], ["values", "Value"], ["checks", "Checks"], ["coverage", "Catalogue"], ["inside", "Inside"], ["events", "Events"]].map(([id, name]) => el("li", {}, el("button", { type: "button", onclick: () => jump(id) }, name)))));
  const node = el("div", {}, el("div", { class: "title" }, heading, who, contents), parts[0].node, parts[1].node, parts[2].node, parts[3].node, parts[4].node, parts[5].node, inside, recent.node);
  return {
    node,
    title: "Live decisions",
    update(body) {
      const shares = Object.entries(body.deployment.shares || {}).map(([name, share]) => (share === 1 ? name : `${name} ${percent(share)}`)).join(", ");
      const shadows = body.deployment.shadows?.length ? `; looking on: ${body.deployment.shadows.join(", ")}` : "";
      const counting = body.ready ? "" : ` Still counting: ${count(body.behind)} entries of the log to go.`;
      say(who, `Deciding: ${shares}${body.deployment.holdout ? `; ${percent(body.deployment.holdout)} held out (${body.deployment.holdout_arm})` : ""}${shadows}.${counting}`);
      for (const part of parts) part.update(body);
    },
    stop: () => recent.stop(),
  };
}

function jump(id) {
  const to = document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  to.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
  const heading = to.querySelector("h2");
  heading.setAttribute("tabindex", "-1");
  heading.focus({ preventScroll: true });
}
