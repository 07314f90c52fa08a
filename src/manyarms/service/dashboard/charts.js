// Charts as SVG, drawn to the width that there is. Every chart has a text that says what is seen, and a table of its numbers.

import { cells, el, fresh, rows, say, svg, swap, table } from "./dom.js";
import { hour, number, signed } from "./format.js";

/** Round numbers from low to high. */
export function ticks(low, high, about = 4) {
  const raw = (high - low) / about || 1;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * size).find((one) => one >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(at === 0 ? 0 : Number((at * step).toPrecision(12)));
  return found;
}

const text = (x, y, said, attributes) => svg("text", { x: x.toFixed(1), y: y.toFixed(1), ...attributes }, said);

/** A figure: a drawing with a name, and its numbers as a table for whoever prefers them. draw(width) gives the drawing. */
export function figure(name, columns, attributes) {
  const id = fresh("figure");
  const box = el("div", { class: "drawing" });
  const caption = el("figcaption", { id });
  const numbers = table(`${name}: numbers`, columns);
  const more = el("details", { class: "numbers" }, el("summary", {}, "Show as a table"), numbers.wrap);
  const node = el("figure", { ...attributes }, box, caption, more);
  let last = null;
  const fillTable = () => {
    if (more.open && last) rows(numbers.body, last.table(), () => el("tr"), (row, one) => cells(row, one, numbers.kinds));
  };
  const draw = () => {
    if (!last || !box.clientWidth) return;
    const drawing = last.draw(box.clientWidth);
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", `${name}. ${last.told}`);
    swap(box, drawing);
  };
  more.addEventListener("toggle", fillTable);
  new ResizeObserver(() => draw()).observe(box);
  return {
    node,
    /** what: {draw(width), table(), told, caption} */
    show(what) {
      last = what;
      say(caption, what.caption || "");
      draw();
      fillTable();
    },
  };
}

/** Curves over time. series: [{name, values, look}], values null where there is nothing; waits: seconds that are not complete. */
export function overTime({ start, step, series, format, least = 0, waits = 0, now = 0, height = 220 }) {
  return (width) => {
    const left = 52, right = 12, top = 14, bottom = 28;
    const points = series[0].values.length;
    const known = series.flatMap((one) => one.values).filter((value) => value !== null);
    const low = Math.min(...known, least);
    const most = Math.max(...known, low, 0);
    const peak = most > low ? low + 1.06 * (most - low) : low + 1;
    const marks = ticks(low, peak);
    const x = (place) => left + ((width - left - right) * (place + 0.5)) / points;
    const y = (value) => top + (height - top - bottom) * (1 - (value - low) / (peak - low || 1));
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart" });
    for (const mark of marks) {
      root.append(svg("line", { x1: left, x2: width - right, y1: y(mark), y2: y(mark), class: "grid" }));
      root.append(text(left - 8, y(mark) + 4, format(mark), { class: "end quiet" }));
    }
    const labels = Math.max(2, Math.min(7, Math.floor((width - left - right) / 86)));
    for (let number_ = 0; number_ < labels; number_ += 1) {
      const place = Math.round((number_ * (points - 1)) / (labels - 1));
      const edge = number_ === 0 ? "start" : number_ === labels - 1 ? "end" : "middle";
      root.append(text(number_ === 0 ? left : number_ === labels - 1 ? width - right : x(place), height - 8, hour(start + place * step), { class: `${edge} quiet` }));
    }
    if (waits > 0) {
      const from = Math.max(0, (now - waits - start) / step);
      if (from < points) {
        const edge = left + ((width - left - right) * from) / points;
        root.append(svg("rect", { x: edge, y: top, width: Math.max(0, width - right - edge), height: height - top - bottom, class: "waiting" }));
      }
    }
    series.forEach((one, number_) => {
      const look = one.look ?? number_;
      let line = "", area = "", begun = null, before = null;
      one.values.forEach((value, place) => {
        if (value === null) {
          before = null;
          return;
        }
        if (one.area) {
          if (before === null) {
            area += `${begun === null ? "" : "Z"}M${x(place).toFixed(1)} ${y(low).toFixed(1)}`;
            begun = place;
          }
          area += `L${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
          if (place === points - 1 || one.values[place + 1] === null) area += `L${x(place).toFixed(1)} ${y(low).toFixed(1)}`;
        }
        line += `${before === null ? "M" : "L"}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
        const alone = before === null && (place === points - 1 || one.values[place + 1] === null);
        if (alone) root.append(svg("circle", { cx: x(place), cy: y(value), r: 2.5, class: `dot c${look}` }));
        before = value;
      });
      if (one.area) root.append(svg("path", { d: area, class: `area c${look}` }));
      root.append(svg("path", { d: line, class: `line c${look}` }));
    });
    pointed(root, { width, height, left, right, top, bottom, points, x, series, start, step, format });
    return root;
  };
}

/** What is under the pointer, told beside it. */
function pointed(root, { width, height, left, right, top, bottom, points, x, series, start, step, format }) {
  const rule = svg("line", { y1: top, y2: height - bottom, class: "rule" });
  const box = svg("g", { class: "told", visibility: "hidden" });
  root.append(rule, box);
  rule.setAttribute("visibility", "hidden");
  root.addEventListener("pointermove", (event) => {
    const at = event.clientX - root.getBoundingClientRect().left;
    const place = Math.max(0, Math.min(points - 1, Math.floor(((at - left) / (width - left - right)) * points)));
    const lines = [hour(start + place * step), ...series.map((one) => `${one.name}: ${one.values[place] === null ? "–" : format(one.values[place])}`)];
    const wide = 14 + 6.6 * Math.max(...lines.map((line) => line.length));
    const from = x(place) + 10 + wide > width ? x(place) - 10 - wide : x(place) + 10;
    swap(box, svg("rect", { x: from, y: top, width: wide, height: 10 + 17 * lines.length, rx: 4 }), ...lines.map((line, number_) => text(from + 8, top + 18 + 17 * number_, line, { class: number_ ? "start" : "start strong" })));
    rule.setAttribute("x1", x(place));
    rule.setAttribute("x2", x(place));
    rule.setAttribute("visibility", "visible");
    box.setAttribute("visibility", "visible");
  });
  root.addEventListener("pointerleave", () => {
    rule.setAttribute("visibility", "hidden");
    box.setAttribute("visibility", "hidden");
  });
}

/** Which curve is which: a list with a sample of each line. */
export function legend(names) {
  return el("ul", { class: "legend" }, ...names.map(([name, look, kind]) =>
    el("li", {}, svg("svg", { width: 26, height: 12, "aria-hidden": "true", class: "chart" },
      kind === "bar" ? svg("rect", { x: 2, y: 1, width: 22, height: 10, class: `bar c${look}` }) : svg("path", { d: "M1 6H25", class: `line c${look}` })), name)));
}

/** Means with intervals, one below the other. lines: [{name, note, mean, low, high, look, mark}]; zero: a line at 0. */
export function forest(lines, { format = number, zero = false, floor = null, ceiling = null } = {}) {
  return (width) => {
    const narrow = width < 520;
    const left = narrow ? 12 : Math.min(230, 0.34 * width), right = narrow ? 12 : 190;
    const each = narrow ? 62 : 44, top = 8, bottom = 30;
    const height = top + bottom + each * lines.length;
    const ends = lines.flatMap((one) => [one.low, one.high, one.mean]).filter((value) => value !== null && value !== undefined);
    if (zero) ends.push(0);
    let low = Math.min(...ends), high = Math.max(...ends);
    const room = 0.06 * (high - low) || 0.05;
    low = floor === null ? low - room : Math.max(floor, low - room);
    high = ceiling === null ? high + room : Math.min(ceiling, high + room);
    const x = (value) => left + ((width - left - right) * (Math.min(high, Math.max(low, value)) - low)) / (high - low || 1);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart" });
    for (const mark of ticks(low, high, narrow ? 4 : 6)) {
      root.append(svg("line", { x1: x(mark), x2: x(mark), y1: top, y2: height - bottom, class: zero && Math.abs(mark) < 1e-12 ? "zero" : "grid" }));
      root.append(text(x(mark), height - 10, format(mark), { class: "middle" }));
    }
    lines.forEach((one, place) => {
      const base = top + each * place, y = base + (narrow ? 42 : each / 2);
      const said = `${format(one.mean)}  (${one.low === null ? "…" : format(one.low)} to ${one.high === null ? "…" : format(one.high)})`;
      const most = narrow ? Math.floor((width - 24 - 7 * said.length) / 7.2) : Math.floor(left / 7.4);
      if (narrow) {
        root.append(text(12, base + 20, clipped(one.name, most), { class: "start strong" }), text(width - 12, base + 20, said, { class: "end" }));
      } else {
        root.append(text(0, y - 1, clipped(one.name, most), { class: "start strong" }), text(0, y + 14, clipped(one.note || "", most + 6), { class: "start quiet" }));
        root.append(text(width, y + 4, said, { class: "end" }));
      }
      const from = one.low === null ? low : one.low, to = one.high === null ? high : one.high;
      root.append(svg("path", { d: `M${x(from)} ${y}H${x(to)}`, class: `whisker c${one.look}` }));
      if (one.low !== null) root.append(svg("path", { d: `M${x(from)} ${y - 5}V${y + 5}`, class: `whisker c${one.look}` }));
      if (one.high !== null) root.append(svg("path", { d: `M${x(to)} ${y - 5}V${y + 5}`, class: `whisker c${one.look}` }));
      else root.append(svg("path", { d: `M${x(to) - 6} ${y - 5}L${x(to)} ${y}L${x(to) - 6} ${y + 5}`, class: `whisker c${one.look}` }));
      root.append(one.mark === "diamond"
        ? svg("path", { d: `M${x(one.mean)} ${y - 6}l6 6l-6 6l-6 -6z`, class: `dot c${one.look}` })
        : svg("circle", { cx: x(one.mean), cy: y, r: 5, class: `dot c${one.look}` }));
    });
    return root;
  };
}

const clipped = (said, most) => (said.length > most ? `${said.slice(0, Math.max(1, most - 1))}…` : said);

/** Bars, one on top of the other where there are several kinds. kinds: [{name, values, look}]; labels below some of the bars. */
export function histogram({ kinds, labels, height = 190 }) {
  return (width) => {
    const left = 48, right = 8, top = 10, bottom = 28;
    const bars = kinds[0].values.length;
    const totals = Array.from({ length: bars }, (_, place) => kinds.reduce((sum, one) => sum + one.values[place], 0));
    const marks = ticks(0, Math.max(1, ...totals), 3).filter(Number.isInteger);
    const peak = Math.max(1, ...totals);
    const wide = (width - left - right) / bars;
    const y = (value) => top + (height - top - bottom) * (1 - value / peak);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart" });
    for (const mark of marks) {
      root.append(svg("line", { x1: left, x2: width - right, y1: y(mark), y2: y(mark), class: "grid" }));
      root.append(text(left - 8, y(mark) + 4, number(mark, 2), { class: "end quiet" }));
    }
    for (let place = 0; place < bars; place += 1) {
      let below = 0;
      for (const one of kinds) {
        const value = one.values[place];
        if (value) {
          const size = Math.max(1.5, y(below) - y(below + value));
          root.append(svg("rect", { x: left + wide * place + 1, width: Math.max(1, wide - 2), y: y(below) - size, height: size, class: `bar c${one.look}` }, svg("title", {}, `${one.name}: ${value}`)));
        }
        below += value;
      }
    }
    for (const [place, said] of labels) {
      root.append(text(left + wide * place, height - 8, said, { class: place <= 0 ? "start quiet" : place >= bars ? "end quiet" : "middle quiet" }));
    }
    return root;
  };
}

/** What features add to a score, from 0 to the left or right, split into root and leaf. */
export function contributions(features) {
  return (width) => {
    const narrow = width < 520;
    const left = narrow ? 8 : Math.min(240, 0.36 * width), right = 76, each = narrow ? 46 : 30, top = 4, bottom = 26;
    const height = top + bottom + each * features.length;
    const parts = features.map((one) => (one.root === undefined ? [one.contribution] : [one.root, one.leaf]));
    const high = Math.max(0, ...parts.map((one) => one.filter((v) => v > 0).reduce((a, b) => a + b, 0)));
    const low = Math.min(0, ...parts.map((one) => one.filter((v) => v < 0).reduce((a, b) => a + b, 0)));
    const x = (value) => left + ((width - left - right) * (value - low)) / (high - low || 1);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "chart" });
    for (const mark of ticks(low, high || 1, narrow ? 2 : 4)) {
      root.append(svg("line", { x1: x(mark), x2: x(mark), y1: top, y2: height - bottom, class: Math.abs(mark) < 1e-12 ? "zero" : "grid" }));
      root.append(text(x(mark), height - 8, number(mark, 2), { class: "middle" }));
    }
    features.forEach((one, place) => {
      const base = top + each * place, y = base + (narrow ? 22 : 6), tall = 16;
      const said = `${one.name} = ${number(one.value)}`;
      root.append(text(narrow ? 8 : 0, narrow ? base + 16 : y + 13, clipped(said, narrow ? 40 : Math.floor(left / 7.2)), { class: "start" }));
      let up = 0, down = 0;
      parts[place].forEach((value, which) => {
        const from = value >= 0 ? up : down + value, to = value >= 0 ? up + value : down;
        if (value >= 0) up += value;
        else down += value;
        root.append(svg("rect", { x: x(from), width: Math.max(0.5, x(to) - x(from)), y, height: tall, class: `bar c${parts[place].length === 1 ? 1 : which}` }));
      });
      root.append(text(width, y + 13, signed(one.contribution), { class: "end" }));
    });
    return root;
  };
}
