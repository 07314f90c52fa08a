// Elements of the page. Text that comes from data goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  put(node, ...children);
  return node;
}

/** Append texts and nodes; what is empty is left out. */
export function put(node, ...children) {
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Replace what a node has by something else. */
export function swap(node, ...children) {
  node.replaceChildren();
  return put(node, ...children);
}

/** Set a text, and touch nothing where it is the same: screen readers and selections stay calm. */
export function say(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** The rows of a list, made once and changed in place, so that what has the focus keeps it. */
export function rows(parent, data, make, update) {
  while (parent.children.length > data.length) parent.lastElementChild.remove();
  data.forEach((one, place) => {
    let node = parent.children[place];
    if (!node) {
      node = make();
      parent.append(node);
    }
    update(node, one, place);
  });
}

let numbered = 0;
export const fresh = (name) => `${name}-${++numbered}`;

/** A section with a heading, a sentence below it, and room for more. */
export function section(title, about, attributes) {
  const id = fresh("h");
  const body = el("section", { "aria-labelledby": id, ...attributes }, el("h2", { id }, title));
  if (about) body.append(el("p", { class: "about" }, about));
  return body;
}

/** Explanations that are there for whoever wants them: pairs of a name and a sentence. */
export function explained(pairs, title = "What do these mean?") {
  const list = el("dl", {}, ...pairs.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]).flat());
  return el("details", { class: "explain" }, el("summary", {}, title), list);
}

/** A table whose head is there, and whose body is filled later; columns: [name, sentence, "number" or ""]. */
export function table(caption, columns, attributes) {
  const head = columns.map(([name, title, kind]) => el("th", { scope: "col", title, class: kind }, name));
  const body = el("tbody");
  const made = el("table", attributes, el("caption", { class: "hidden" }, caption), el("thead", {}, el("tr", {}, ...head)), body);
  return { wrap: el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made), body, kinds: columns.map((one) => one[2] || "") };
}

/** Cells of a row, changed in place; undefined leaves a cell to whoever fills it. */
export function cells(row, values, kinds) {
  values.forEach((value, place) => {
    let cell = row.children[place];
    if (!cell) {
      cell = el(place ? "td" : "th", { class: kinds[place], scope: place ? undefined : "row" });
      row.append(cell);
    }
    if (value !== undefined) say(cell, value ?? "–");
  });
}
