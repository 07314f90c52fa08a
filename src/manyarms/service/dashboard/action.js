// The page of one action.

import { get, query } from "./api.js";
import { figure, forest, legend, overTime } from "./charts.js";
import { el, explained, say, section } from "./dom.js";
import { eventsSection } from "./events.js";
import { count, hour, number, plural, time } from "./format.js";

export function actionPage(id) {
  const state = el("p", { class: "about" });
  const problem = el("p", { class: "calm" });
  const names = [["plays", "Plays"], ["rewarded", "With a reward"], ["mean", "Mean reward"], ["last", "Last played"]];
  const nodes = {};
  const list = el("dl", { class: "tiles" });
  for (const [name, label] of names) {
    nodes[name] = el("dd", { class: "value" }, "–");
    list.append(el("div", { class: "tile" }, el("dt", {}, label), nodes[name]));
  }
  const value = section("Value", "The mean reward of its plays whose waiting time is over, with a 95 % interval that holds at all times at once, for this action and where it was chosen: the best of many looks better than it is.");
  const interval = figure("Mean reward with its interval", [["Of", ""], ["Events", "", "number"], ["Mean", "", "number"], ["At least", "", "number"], ["At most", "", "number"]]);
  const none = el("p", { class: "calm" });
  value.append(none, interval.node);
  const over = section("Plays over time", null);
  const plays = figure("Plays over time", [["Time", ""], ["Plays", "", "number"], ["With a reward", "", "number"], ["Total reward", "", "number"]]);
  over.append(legend([["Plays", 0], ["With a reward", 1]]), plays.node);
  const recent = eventsSection({ action: id });
  const below = el("div", { hidden: true }, list, el("div", { class: "pair" }, wrapped(value), wrapped(over)), explained([
    ["Plays", "How often it was chosen since counting began: in the last day, but at most 100,000 decisions before the service started."],
    ["With a reward", "Plays for which a reward came, however late."],
    ["Mean reward", "Of its plays; those without a reward count with the default, or not at all where there is none."],
  ]), recent.node);
  const node = el("div", {}, el("p", {}, el("a", { href: "#/" }, "← Overview")), el("h1", { class: "id" }, id), state, problem, below);
  let stopped = false, minutes = 1440;

  async function load() {
    try {
      const one = await get(query(`/v1/catalogue/${encodeURIComponent(id)}/statistics`, { minutes }));
      if (stopped) return;
      problem.hidden = true;
      below.hidden = false;
      show(one);
    } catch (error) {
      if (stopped) return;
      problem.hidden = false;
      below.hidden = true;
      say(problem, error.status === 404 ? "There is no action with this id." : error.status ? error.message : "The service does not answer.");
    }
  }

  function show(one) {
    const words = [one.retired && "retired: it is not chosen any more", one.capped && "capped: it was taken often enough, and rests"].filter(Boolean);
    say(state, words.length ? `This action is ${words.join("; and ")}.` : `An action that can be chosen${one.since ? `; counted since ${time(one.since)}` : ""}.`);
    say(nodes.plays, count(one.plays));
    say(nodes.rewarded, count(one.rewarded));
    say(nodes.mean, number(one.mean));
    say(nodes.last, one.last === null ? "not since" : time(one.last));
    const found = one.interval;
    say(none, found ? "" : one.no_interval ? `There is no interval: ${one.no_interval}.` : "None of its plays is settled yet.");
    none.hidden = Boolean(found);
    interval.node.hidden = !found;
    if (found) {
      interval.show({
        draw: forest([{ name: "Mean reward", note: plural(found.events, "settled play"), look: 0, ...found }]),
        told: `${number(found.mean)}, at least ${number(found.low)}, at most ${number(found.high)}.`,
        caption: `Of ${plural(found.events, "settled play")}, in the contexts in which it was chosen.`,
        table: () => [["Mean reward", count(found.events), number(found.mean), number(found.low), number(found.high)]],
      });
    }
    const { start, step, plays: played, rewarded, total } = one.series;
    plays.show({
      draw: overTime({ start, step, format: (shown) => number(shown), series: [{ name: "Plays", values: played, area: true }, { name: "With a reward", values: rewarded, look: 1 }], height: 180 }),
      told: `From ${hour(start)} to now, ${count(played.reduce((a, b) => a + b, 0))} plays.`,
      caption: `In steps of ${plural(step / 60, "minute")}, among the last 131,072 plays of all actions.`,
      table: () => played.map((number_, place) => [time(start + place * step), count(number_), count(rewarded[place]), number(total[place])]).reverse().filter((row) => row[1] !== "0"),
    });
  }

  load();
  return {
    node,
    title: `Action ${id}`,
    update(body) {
      if (body.since) minutes = Math.max(60, Math.min(1440, Math.ceil((body.at - body.since) / 60))); // what there is
      load();
      recent.update(body);
    },
    stop: () => {
      stopped = true;
      recent.stop();
    },
  };
}

const wrapped = (node) => {
  node.classList.add("card");
  return node;
};
