// Small charts in SVG: no library, no inline style, a text for those who do not see them.
// They are drawn as wide as they are shown, so that their words have the size of other words.

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 40, RIGHT = 10, TOP = 8, BOTTOM = 20;

// An element; text is always text. Properties that start with "on" are listeners.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const round = (value) => Math.round(value * 10) / 10;

// A number for people: 2,835, 43.2k, 0.0312.
export function short(value) {
  if (value == null || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(3)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e5) return `${+(value / 1e3).toPrecision(3)}k`;
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return String(+value.toPrecision(3));
}

// -- axes ------------------------------------------------------------------------------------------------

const STEPS = [1, 2, 5, 10];
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

function stepOf(span, count) {
  const rough = span / count, size = 10 ** Math.floor(Math.log10(rough));
  return size * STEPS.find((one) => one * size >= rough * 0.999);
}

// Round numbers between two others.
function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const step = stepOf(high - low, count), found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(+(n * step).toPrecision(12));
  return found;
}

// An axis of training steps.
export const bySteps = {
  ticks: (low, high, room) => ticks(low, high, Math.max(2, Math.floor(room / 45))).filter(Number.isInteger),
  tick: (value, isFirst) => (isFirst ? `step ${value}` : String(value)),
  text: (value) => `step ${Math.round(value)}`,
};

// An axis of time, in seconds since 1970.
export const byTime = {
  ticks(low, high, room) {
    const step = SECONDS.find((one) => (high - low) / one <= Math.max(2, room / 80)) ?? Math.ceil((high - low) / 86400 / 6) * 86400;
    const zone = new Date(low * 1000).getTimezoneOffset() * 60, found = [];
    for (let at = Math.ceil((low - zone) / step) * step + zone; at <= high; at += step) found.push(at);
    return found.length ? found : [low];
  },
  tick(value, _, all) {
    const date = new Date(value * 1000), gap = all.length > 1 ? all[1] - all[0] : 1;
    if (gap >= 86400) return date.toLocaleDateString(undefined, { month: "short", day: "numeric" });
    return date.toLocaleTimeString(undefined, { hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: gap < 60 ? "2-digit" : undefined });
  },
  text: (value) => new Date(value * 1000).toLocaleTimeString(undefined, { hourCycle: "h23" }),
};

const plain = { ticks: (low, high) => ticks(low, high, 5), tick: short, text: short };

function axes(svg, { width, height, low, high, yTicks, yText = short, axis, from, to, px }) {
  const bottom = height - BOTTOM;
  for (const value of yTicks) {
    const y = round(TOP + (bottom - TOP) * (1 - (value - low) / (high - low || 1)));
    svg.append(s("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }));
    svg.append(s("text", { x: LEFT - 5, y: y + 4, "text-anchor": "end" }, yText(value)));
  }
  if (from == null) return;
  const all = axis.ticks(from, to, width - LEFT - RIGHT);
  all.forEach((value, n) => {
    const x = px(value), anchor = x < LEFT + 14 ? "start" : x > width - 24 ? "end" : "middle";
    svg.append(s("line", { class: "tick", x1: x, x2: x, y1: bottom, y2: bottom + 3 }));
    svg.append(s("text", { x: anchor === "start" ? Math.max(x - 4, 0) : anchor === "end" ? width - 1 : x, y: height - 4, "text-anchor": anchor }, axis.tick(value, n === 0, all)));
  });
}

// -- what all charts share -------------------------------------------------------------------------------

// Where the pointer is, so that a chart that is drawn anew goes on showing the same place.
let pointed = { label: "", at: 0 };

// A figure that draws itself again when its width changes.
function figure(label, draw, ...below) {
  const made = h("figure", {}, ...below);
  let width = 0;
  new ResizeObserver(([entry]) => {
    const room = Math.floor(entry.contentRect.width);
    if (!room || room === width) return;
    width = room;
    made.querySelector(":scope > svg")?.remove();
    made.prepend(draw(room));
  }).observe(made);
  return made;
}

function frame(width, height, label) {
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
}

function swatch(look) {
  return look === "band" ? s("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" }, s("rect", { class: "band", width: 24, height: 8 })) :
    s("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" }, s("path", { class: `line l${look}`, d: "M0 4H24" }));
}

// A curve in words: where it begins and where it ends.
function inWords({ name, values }, x, axis) {
  const there = values.map((value, i) => [value, i]).filter(([value]) => value != null);
  if (!there.length) return `${name}: no values`;
  const [first, last] = [there[0], there[there.length - 1]];
  return there.length === 1 ? `${name} ${short(first[0])}` : `${name} from ${short(first[0])} at ${axis.text(x[first[1]])} to ${short(last[0])} at ${axis.text(x[last[1]])}`;
}

// -- curves ----------------------------------------------------------------------------------------------

// Curves over a common axis. A gap is a null; what is above the ceiling is drawn there. `onpick` is called with the
// place that is clicked on. `mark` is a place from which on something holds.
export function curves({ x, series, band, mark, low, high, height = 150, label, axis = plain, onpick, unit = short, yText = short, ceiling = Infinity, isWhole = false }) {
  const known = series.flatMap((one) => one.values).concat(band ? [...band.high, ...band.low] : []).filter((v) => v != null);
  if (!known.length) return h("p", { class: "quiet" }, `${label}: nothing yet`);
  const least = Math.min(low ?? 0, ...known), most = Math.min(Math.max(high ?? 0, ...known), ceiling);
  const step = Math.max(stepOf(most - least || 1, height > 150 ? 5 : 3), isWhole ? 1 : 0);
  const bottom = Math.floor(least / step + 1e-9) * step, top = Math.max(Math.ceil(most / step - 1e-9) * step, bottom + step);
  const legend = h("p", { class: "legend" });
  const say = (i) => legend.replaceChildren(...(i == null ? [] : [h("b", {}, `${axis.text(x[i])}`)]),
    ...series.map((one, n) => h("span", {}, swatch(one.look ?? n), i == null ? one.name : `${one.name} ${one.values[i] == null ? "–" : (one.unit ?? unit)(one.values[i])}`)),
    ...(band ? [h("span", {}, swatch("band"), i == null || band.low[i] == null ? band.name : `${band.name} ${short(band.low[i])} to ${short(band.high[i])}`)] : []));
  say(null);
  const words = `${label}. ${series.map((one) => inWords(one, x, axis)).join("; ")}.`;

  const draw = (width) => {
    const from = x[0], to = x[x.length - 1];
    const px = (value) => round(LEFT + (width - LEFT - RIGHT) * (to > from ? (value - from) / (to - from) : 0.5));
    const py = (value) => round(TOP + (height - BOTTOM - TOP) * (1 - (Math.min(value, top) - bottom) / (top - bottom)));
    const svg = frame(width, height, words);
    axes(svg, { width, height, low: bottom, high: top, yTicks: ticks(bottom, top, (top - bottom) / step), yText, axis, from, to, px });
    if (band) {
      const there = x.map((_, i) => i).filter((i) => band.low[i] != null);
      const up = there.map((i) => `${px(x[i])},${py(band.high[i])}`), down = there.reverse().map((i) => `${px(x[i])},${py(band.low[i])}`);
      if (there.length > 1) svg.append(s("polygon", { class: "band", points: [...up, ...down].join(" ") }));
    }
    if (mark != null) svg.append(s("line", { class: "mark", x1: px(mark), x2: px(mark), y1: TOP, y2: height - BOTTOM }));
    series.forEach((one, n) => {
      const look = one.look ?? n;
      let path = "";
      one.values.forEach((value, i) => {
        if (value == null) return;
        const isAlone = one.values[i - 1] == null && one.values[i + 1] == null;
        path += `${i && one.values[i - 1] != null ? "L" : "M"}${px(x[i])} ${py(value)}`;
        if (isAlone) svg.append(s("circle", { class: `dot l${look}`, cx: px(x[i]), cy: py(value), r: 2.2 }));
      });
      svg.append(s("path", { class: `line l${look}`, d: path }));
    });
    const cursor = s("line", { class: "cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
    svg.append(cursor);
    const nearest = (at) => x.reduce((best, one, i) => (Math.abs(px(one) - at) < Math.abs(px(x[best]) - at) ? i : best), 0);
    const point = (at) => {
      const best = nearest(at), place = px(x[best]);
      cursor.setAttribute("x1", place); cursor.setAttribute("x2", place); cursor.setAttribute("visibility", "visible");
      say(best);
    };
    svg.addEventListener("pointermove", (event) => { pointed = { label, at: event.clientX - svg.getBoundingClientRect().left }; point(pointed.at); });
    svg.addEventListener("pointerleave", () => { pointed = { label: "", at: 0 }; cursor.setAttribute("visibility", "hidden"); say(null); });
    if (onpick) { svg.classList.add("pick"); svg.addEventListener("click", (event) => onpick(nearest(event.clientX - svg.getBoundingClientRect().left))); }
    if (pointed.label === label) point(pointed.at);
    return svg;
  };
  return figure(label, draw, legend);
}

// -- histograms ------------------------------------------------------------------------------------------

// A histogram of scores from 0 to 1, small enough for a cell of a table.
export function spark(counts, label) {
  const most = Math.max(1, ...counts), svg = frame(90, 22, label);
  counts.forEach((count, i) => {
    const tall = count ? Math.max(1, 20 * (count / most)) : 0;
    const bar = s("rect", { class: "bar", x: round(i * (90 / counts.length) + 0.5), width: round(90 / counts.length - 1), y: round(21 - tall), height: round(tall) });
    svg.append(bar);
  });
  svg.append(s("line", { class: "axis", x1: 0, x2: 90, y1: 21.5, y2: 21.5 }), s("title", {}, label));
  return svg;
}

// Histograms side by side; the more, the stronger the colour. Each column is compared with itself.
export function heat({ x, columns, label, height = 150, axis = plain, onpick }) {
  if (!columns.length) return h("p", { class: "quiet" }, `${label}: nothing yet`);
  const draw = (width) => {
    const svg = frame(width, height, label);
    const wide = (width - LEFT - RIGHT) / columns.length;
    const from = x[0], to = x[x.length - 1];
    const px = (value) => round(LEFT + wide / 2 + (width - LEFT - RIGHT - wide) * (to > from ? (value - from) / (to - from) : 0.5));
    axes(svg, { width, height, low: 0, high: 1, yTicks: [0, 0.25, 0.5, 0.75, 1], axis, from, to, px });
    columns.forEach((cells, i) => {
      const all = cells.reduce((a, b) => a + b, 0) || 1, tall = (height - BOTTOM - TOP) / cells.length;
      cells.forEach((count, j) => {
        if (!count) return;
        const cell = s("rect", { class: "cell", x: round(px(x[i]) - wide / 2), width: round(wide + 0.3), y: round(height - BOTTOM - (j + 1) * tall),
          height: round(tall), "fill-opacity": Math.min(1, 0.12 + (0.88 * count) / all).toFixed(2) },
          s("title", {}, `${axis.text(x[i])}: ${count} of ${all} scores from ${j / cells.length} to ${(j + 1) / cells.length}`));
        if (onpick) { cell.classList.add("pick"); cell.addEventListener("click", () => onpick(i)); }
        svg.append(cell);
      });
    });
    return svg;
  };
  return figure(label, draw);
}
