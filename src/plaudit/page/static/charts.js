// Small charts in SVG: no library, no inline style, a text for those who do not see them.

const SVG = "http://www.w3.org/2000/svg";
const NARROW = 420, LEFT = 34, RIGHT = 8, TOP = 8, BOTTOM = 18;

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

export function short(value) {
  if (value == null || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return String(+value.toPrecision(3));
}

function frame(width, height, label) {
  return s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

function axes(svg, width, height, low, high, xs, xText) {
  const bottom = height - BOTTOM;
  for (const part of [0, 0.5, 1]) {
    const y = TOP + (bottom - TOP) * (1 - part);
    svg.append(s("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }));
    svg.append(s("text", { x: LEFT - 4, y: y + 3, "text-anchor": "end" }, short(low + (high - low) * part)));
  }
  if (xs.length) {
    const ends = xs.length > 1 ? [[xs[0], LEFT, "start"], [xs[xs.length - 1], width - RIGHT, "end"]] : [[xs[0], LEFT, "start"]];
    for (const [value, x, anchor] of ends) svg.append(s("text", { x, y: height - 4, "text-anchor": anchor }, xText(value)));
  }
}

// Curves over a common axis. A gap is a null.
export function curves({ x, series, band, low = 0, high, width = NARROW, height = 150, label, xText = short }) {
  const known = series.flatMap((one) => one.values).concat(band ? band.high : []).filter((v) => v != null);
  const top = high ?? Math.max(1e-9, ...known) * 1.05;
  const bottom = Math.min(low, ...known);
  const px = (i) => round(LEFT + (width - LEFT - RIGHT) * (x.length > 1 ? (x[i] - x[0]) / (x[x.length - 1] - x[0]) : 0.5));
  const py = (value) => round(TOP + (height - BOTTOM - TOP) * (1 - (value - bottom) / (top - bottom || 1)));
  const svg = frame(width, height, label);
  axes(svg, width, height, bottom, top, x, xText);
  if (band) {
    const there = x.map((_, i) => i).filter((i) => band.low[i] != null);
    if (there.length > 1) {
      const up = there.map((i) => `${px(i)},${py(band.high[i])}`);
      const down = there.reverse().map((i) => `${px(i)},${py(band.low[i])}`);
      svg.append(s("polygon", { class: "band", points: [...up, ...down].join(" ") }));
    }
  }
  series.forEach((one, n) => {
    let path = "", isDown = false;
    one.values.forEach((value, i) => {
      if (value == null) { isDown = false; return; }
      path += `${isDown ? "L" : "M"}${px(i)} ${py(value)}`;
      isDown = true;
    });
    const line = s("path", { class: `line l${one.look ?? n}`, d: path });
    if (one.values.filter((v) => v != null).length === 1) line.setAttribute("stroke-linecap", "round");
    svg.append(line);
  });
  const readout = h("p", { class: "legend" });
  const say = (i) => readout.replaceChildren(...(i == null ? [] : [h("span", {}, `${xText(x[i])}:`)]),
    ...series.map((one, n) => h("span", {}, swatch(one.look ?? n), i == null ? one.name : `${one.name} ${short(one.values[i])}`)));
  say(null);
  const cursor = s("line", { class: "cursor", y1: TOP, y2: height - BOTTOM, visibility: "hidden" });
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    if (!x.length) return;
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    let best = 0;
    x.forEach((_, i) => { if (Math.abs(px(i) - at) < Math.abs(px(best) - at)) best = i; });
    cursor.setAttribute("x1", px(best)); cursor.setAttribute("x2", px(best)); cursor.setAttribute("visibility", "visible");
    say(best);
  });
  svg.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); say(null); });
  return h("figure", {}, svg, readout);
}

function swatch(look) {
  return s("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" }, s("path", { class: `line l${look}`, d: "M0 4H24" }));
}

// A histogram of scores from 0 to 1.
export function bars({ counts, label, width = NARROW, height = 90 }) {
  const most = Math.max(1, ...counts);
  const svg = frame(width, height, label);
  const step = (width - LEFT - RIGHT) / counts.length;
  axes(svg, width, height, 0, most, [0, 1], short);
  counts.forEach((count, i) => {
    const tall = (height - BOTTOM - TOP) * (count / most);
    const bar = s("rect", { class: "bar", x: round(LEFT + i * step + 1), width: round(step - 2), y: round(height - BOTTOM - tall), height: round(tall) });
    bar.append(s("title", {}, `${i / counts.length} to ${(i + 1) / counts.length}: ${count}`));
    svg.append(bar);
  });
  return h("figure", {}, svg);
}

// Columns of cells; the more, the darker. Each column is compared with itself.
export function heat({ columns, label, width = NARROW, height = 150, ends = [], xText = short }) {
  const svg = frame(width, height, label);
  axes(svg, width, height, 0, 1, ends, xText);
  const wide = (width - LEFT - RIGHT) / Math.max(columns.length, 1);
  columns.forEach((cells, i) => {
    const all = cells.reduce((a, b) => a + b, 0) || 1;
    const tall = (height - BOTTOM - TOP) / cells.length;
    cells.forEach((count, j) => {
      if (!count) return;
      const cell = s("rect", {
        class: "cell", x: round(LEFT + i * wide), width: round(wide + 0.3), y: round(height - BOTTOM - (j + 1) * tall),
        height: round(tall), "fill-opacity": Math.min(1, 0.06 + (1.6 * count) / all).toFixed(2),
      });
      cell.append(s("title", {}, `${count} of ${all}`));
      svg.append(cell);
    });
  });
  return h("figure", {}, svg);
}
