// Numbers, shares, durations and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const some = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export function count(value) {
  if (value === null || value === undefined) return "–";
  return whole.format(value);
}

/** A large count, shortened. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10000) return Number.isInteger(value) ? whole.format(value) : some.format(value);
  return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(1);
  return new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(value);
}

/** Three decimals, so that a column of means lines up. */
export function fixed(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) < 1000 && (value === 0 || Math.abs(value) >= 0.001) ? value.toFixed(3) : number(value);
}

export function signed(value) {
  return value === null || value === undefined ? "–" : (value > 0 ? "+" : value < 0 ? "−" : "") + number(Math.abs(value));
}

export function percent(value) {
  if (value === null || value === undefined) return "–";
  const part = 100 * value;
  const digits = part === 0 || part >= 99.95 || part >= 10 ? 0 : part >= 1 ? 1 : 2;
  return part > 0 && part < 0.01 ? "< 0.01 %" : `${part.toFixed(digits)} %`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let place = 0;
  while (value >= 1000 && place < units.length - 1) {
    value /= 1000;
    place += 1;
  }
  return `${some.format(value)} ${units[place]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.9995) return `${some.format(1000 * value)} ms`;
  if (value < 120) return `${some.format(value)} s`;
  if (value < 7200) return `${whole.format(value / 60)} min`;
  if (value < 172800) return `${some.format(value / 3600)} h`;
  return `${some.format(value / 86400)} days`;
}

/** A duration that is known to within a tenth. */
export const rough = (value) => (value === null || value === undefined ? "–" : seconds(Number(value.toPrecision(2))));

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

export const hour = (at) => clock.format(new Date(1000 * at));

export function time(at) {
  if (at === null || at === undefined) return "–";
  const when = new Date(1000 * at);
  const today = new Date().toDateString() === when.toDateString();
  return today ? exact.format(when) : `${day.format(when)}, ${exact.format(when)}`;
}

export const plural = (number, word, many = `${word}s`) => `${count(number)} ${number === 1 ? word : many}`;
