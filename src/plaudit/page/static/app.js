// The page: panels that answer questions about a run, and every verdict with its evidence.

import { bars, curves, h, heat, short } from "./charts.js";

const $ = (id) => document.getElementById(id);
const WIDE = 870, ROW = 31, PAGE = 100, AHEAD = 12, LONG = 20000;
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

const state = { total: 0, pages: new Map(), chosen: 0, open: "", query: "", version: 0, only: null };

// A text as it may be shown: what is invisible or turns the direction of writing is named.
const shown = (text) => String(text ?? "").replace(HIDDEN, (c) => `‹U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);
const percent = (part, all) => (all ? `${short((100 * part) / all)}%` : "–");
const seconds = (value) => (value == null ? "–" : value < 1 ? `${Math.round(value * 1000)} ms` : value < 120 ? `${short(value)} s` : `${Math.round(value / 60)} min`);
const dollars = (value) => (value == null ? "no price" : `$${value < 1 ? value.toPrecision(2) : value.toFixed(2)}`);
const clock = (time) => new Date(time * 1000).toLocaleTimeString();
const fixed = (value) => (value == null ? "–" : value.toFixed(2));

async function get(path, parameters) {
  const answer = await fetch(`api/${path}?${parameters ?? ""}`);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error?.message ?? body.error ?? answer.statusText);
  return body;
}

function scope() {
  const found = new URLSearchParams();
  for (const name of ["run", "judge", "steps"]) if ($(name).value.trim()) found.set(name, $(name).value.trim());
  return found;
}

function filters() {
  const found = scope();
  for (const name of ["status", "text"]) if ($(name).value) found.set(name, $(name).value);
  const [order, way] = $("sort").value.split(":");
  found.set("order", order);
  if (way === "desc") found.set("descending", "1");
  if (state.only) found.set(...state.only);
  return found;
}

function say(text, isLive = false) {
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").classList.toggle("live", isLive);
}

// -- panels ----------------------------------------------------------------------------------------------

function panel(id, question, ...content) {
  const made = h("section", { class: "panel", id, "aria-labelledby": `${id}-title` }, h("h3", { id: `${id}-title` }, question), ...content);
  $(id).replaceWith(made);
  return made;
}

const figures = (...pairs) => h("ul", { class: "figures" }, pairs.map(([value, name, isBad]) =>
  h("li", {}, h("b", { class: isBad ? "warn" : null }, value), h("span", {}, name))));

const table = (head, rows) => h("table", {}, h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col" }, one)))),
  h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => (cell instanceof Node ? h("td", {}, cell) :
    h("td", { class: typeof cell === "number" ? "number" : null }, typeof cell === "number" ? short(cell) : cell)))))));

const ORDER = ["alive", "histogram", "length", "sound", "lost", "waiting", "endpoints", "time", "money", "settings"];
$("panels").append(...ORDER.map((id) => h("section", { id, class: "panel", hidden: true })));

function drawOverview(found) {
  const { trend, score, money } = found;
  const x = trend.x, columns = trend.columns;
  const by = trend.by === "step" ? "step" : "time";
  const xText = by === "step" ? (value) => `step ${Math.round(value)}` : clock;
  const pick = (name) => columns.map((one) => one[name]);
  const hasGold = columns.some((one) => one.gold != null);
  const missing = found.missing.reduce((sum, one) => sum + one.count, 0);
  const groups = columns.reduce((sum, one) => sum + one.groups, 0), flat = columns.reduce((sum, one) => sum + one.flat, 0);
  const correlations = pick("length_correlation");

  const alive = panel("alive", "Is the reward alive?",
    figures([fixed(score.mean), "mean score"], [fixed(score.std), "spread"], [percent(flat, groups), "groups without spread", groups && flat / groups > 0.5]),
    curves({ x, xText, high: 1, width: WIDE, height: 200, label: `Mean score by ${by}, with the middle 80% of scores`, band: { low: pick("p10"), high: pick("p90") },
      series: [{ name: "mean score", values: pick("mean") }, ...(hasGold ? [{ name: "gold", values: pick("gold") }] : []),
        { name: "groups without spread", look: 3, values: columns.map((one) => (one.groups ? one.flat / one.groups : null)) }] }));
  alive.classList.add("wide");

  panel("histogram", `How are scores spread, ${by} by ${by}?`,
    heat({ columns: pick("histogram"), height: 230, ends: x.length > 1 ? [x[0], x[x.length - 1]] : x, xText, label: `Histogram of scores for each ${by}; darker is more` }),
    h("p", { class: "quiet" }, "each column is one histogram from 0 to 1"));

  const strongest = correlations.filter((one) => one != null).pop();
  panel("length", "Does it reward length?",
    figures([found.length.correlation == null ? "–" : found.length.correlation.toFixed(2), "correlation, overall", Math.abs(found.length.correlation ?? 0) > 0.5],
      [strongest == null ? "–" : strongest.toFixed(2), `at the last ${by}`, Math.abs(strongest ?? 0) > 0.5]),
    curves({ x, xText, low: -1, high: 1, height: 110, label: `Correlation of length and score by ${by}`, series: [{ name: "correlation of length and score", values: correlations, look: 1 }] }),
    curves({ x, xText, height: 100, label: `Mean length of responses by ${by}`, series: [{ name: "characters of a response", values: pick("chars"), look: 2 }] }));

  const sound = panel("sound", "Is the judge sound?",
    hasGold ? h("p", {}, "Gold gap: mean score less what the samples truly deserve. A gap that grows is a judge being gamed.") : null,
    found.canaries.seen ? h("p", {}, "Canaries are wrong answers among the samples. ",
      h("a", { href: "#browser", onclick: () => { $("status").value = "canary"; reload(); } }, "List them")) : null,
    table(["judge", "verdicts", "mean", "gold gap", "canaries passed", "unreadable", "declined", "flagged"], found.judges.map((one) => [
      shown(one.judge), one.records, fixed(one.mean), one.gold_gap == null ? "–" : h("span", { class: Math.abs(one.gold_gap) > 0.2 ? "warn" : null }, one.gold_gap.toFixed(2)),
      one.canaries.seen ? h("span", { class: one.canaries.passed ? "warn" : null }, `${one.canaries.passed} of ${one.canaries.seen}`) : "–",
      percent(one.by_status.unreadable ?? 0, one.records), percent(one.by_status.refused ?? 0, one.records), percent(one.by_status.flagged ?? 0, one.records)])),
    found.judges.length ? bars({ counts: found.judges[0].histogram, width: WIDE, height: 100, label: `Scores of ${shown(found.judges[0].judge)}` }) : null);
  sound.classList.add("wide");

  panel("lost", "What is lost?",
    figures([short(missing), "without a score", missing > 0.2 * found.records], [percent(missing, found.records), "of all"]),
    found.missing.length ? table(["cause", "count", "for example"], found.missing.map((one) => [
      one.cause || "unknown", one.count, h("a", { href: `#${one.id}` }, shown(one.error).slice(0, 160) || one.id)])) : h("p", { class: "quiet" }, "nothing"));

  const budget = news?.budget;
  panel("money", "What does it cost?",
    figures([dollars(money.spent), "spent"], ...(budget ? [[dollars(budget.left), `left of ${dollars(budget.limit)}`, budget.left < 0.1 * budget.limit]] : []), [dollars(money.saved), "saved by cache and sharing"], [short(money.calls), "answered by calls"], [short(money.without_call), "without a call"]),
    figures([short(money.prompt_tokens), "prompt tokens"], [short(money.completion_tokens), "completion tokens"]));

  const { latency_s: latency, queued_s: queued } = found;
  panel("time", "Where does the time go?",
    table(["", "p50", "p95", "p99"], [["in our queue", ...["p50", "p95", "p99"].map((name) => seconds(queued[name]))],
      ["at the endpoint", ...["p50", "p95", "p99"].map((name) => seconds(latency[name]))]]));

  choices("run", Object.keys(found.choices.runs)); choices("judge", found.choices.judges);
  choices("status", ["missing", ...(found.canaries.seen ? ["canary"] : []), ...Object.keys(found.by_status)]);
}

function choices(id, words) {
  const select = $(id), chosen = select.value;
  const have = [...select.options].slice(1).map((one) => one.value);
  for (const word of words) if (!have.includes(word)) select.append(h("option", { value: word }, shown(word)));
  select.value = chosen;
}

function setting(value) {
  if (typeof value !== "object") return shown(value);
  return shown(Object.entries(value).filter(([, one]) => one != null).map(([name, one]) => `${name} ${one}`).join(", "));
}

function drawLive(news) {
  const { live, endpoints, sessions } = news;
  panel("waiting", "Is the GPU waiting?", figures(
    [short(live.waiting), "samples without a verdict"], [seconds(live.waiting ? live.oldest_s : 0), "the oldest batch"],
    [live.waiting ? (live.eta_s == null ? "–" : seconds(live.eta_s)) : "done", "until all are judged"], [`${short(live.per_s)}/s`, "verdicts now"]),
    curves({ x: live.series.at, xText: clock, height: 100, label: "Samples without a verdict over time", series: [{ name: "waiting", values: live.series.waiting }] }));
  panel("endpoints", "How much does each endpoint take?", ...endpoints.flatMap((one) => [
    h("p", {}, shown(one.name), " ", one.state === "closed" ? null : h("span", { class: "warn" }, one.state)),
    curves({ x: one.at, xText: clock, height: 110, label: `Limit and calls in flight at ${shown(one.name)}`,
      series: [{ name: "limit", values: one.limit, look: 3 }, { name: "in flight", values: one.in_flight, look: 0 }, { name: "rate limited/s", values: one.rate_limited_per_s, look: 1 }] }),
    h("p", { class: "quiet" }, `${short(one.ok)} answered, ${short(one.rate_limited)} rate limited, ${short(one.failed)} failed`)]),
    endpoints.length ? null : h("p", { class: "quiet" }, "no call yet"));
  const last = sessions[sessions.length - 1];
  panel("settings", "Settings in force", last ? h("dl", {}, ...Object.entries(last.settings).filter(([, value]) => value != null && value.length !== 0).flatMap(([name, value]) =>
    [h("dt", {}, name), ...[value].flat().map((one) => h("dd", {}, setting(one)))])) : h("p", { class: "quiet" }, "none recorded"));
}

// -- the list --------------------------------------------------------------------------------------------

async function reload({ keep = false } = {}) {
  const query = filters().toString();
  if (!keep || query !== state.query) { $("scroller").scrollTop = 0; state.chosen = 0; }
  state.query = query;
  state.pages = new Map();
  $("clear").hidden = !state.only;
  try {
    await page(Math.floor($("scroller").scrollTop / ROW / PAGE));
    draw();
  } catch (error) { $("count").textContent = error.message; }
}

function page(number) {
  if (!state.pages.has(number)) {
    const query = state.query, parameters = new URLSearchParams(query);
    parameters.set("offset", number * PAGE); parameters.set("limit", PAGE);
    state.pages.set(number, get("records", parameters).then((found) => {
      if (state.query !== query) return;
      state.pages.set(number, found.rows);
      state.total = found.total;
      $("count").textContent = `${found.total.toLocaleString()} of ${found.all.toLocaleString()}`;
    }));
  }
  return state.pages.get(number);
}

function draw() {
  const box = $("scroller");
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - AHEAD);
  const last = Math.min(state.total, first + Math.ceil(box.clientHeight / ROW) + 2 * AHEAD);
  const rows = [];
  for (let number = first; number < last; number++) {
    const found = state.pages.get(Math.floor(number / PAGE));
    if (!Array.isArray(found)) page(Math.floor(number / PAGE)).then(soon, () => {});
    rows.push(row(number, Array.isArray(found) ? found[number % PAGE] : null));
  }
  $("rows").replaceChildren(gap(first), ...rows, gap(Math.max(0, state.total - last)));
}

function gap(count) {
  const made = h("tr", { "aria-hidden": "true" }, h("td"));
  made.firstChild.style.height = `${count * ROW}px`;
  made.hidden = !count;
  return made;
}

function row(number, found) {
  if (!found) return h("tr", { class: "row" }, h("td", {}, "…"));
  const isChosen = number === state.chosen;
  return h("tr", { class: `row${isChosen ? " chosen" : ""}`, "data-id": found.id, "aria-rowindex": number + 2, "aria-current": isChosen ? "true" : null,
    onclick: () => { state.chosen = number; open(found.id); draw(); } },
    h("td", {}, h("span", { class: found.unit == null ? "score missing" : "score" }, fixed(found.unit))),
    h("td", { class: found.unit == null ? "missing" : null }, found.status), h("td", {}, found.step ?? ""), h("td", {}, shown(found.response)),
    h("td", {}, shown(found.reason)), h("td", { class: "number" }, short(found.response_chars)), h("td", { class: "number" }, fixed(found.latency_s)));
}

let isDrawing = false;
function soon() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => { isDrawing = false; draw(); });
}

function choose(number) {
  state.chosen = Math.max(0, Math.min(state.total - 1, number));
  const box = $("scroller"), head = 32, at = state.chosen * ROW;
  if (at < box.scrollTop) box.scrollTop = at;
  else if (at + ROW + head > box.scrollTop + box.clientHeight) box.scrollTop = at + ROW + head - box.clientHeight;
  draw();
}

// -- one record ------------------------------------------------------------------------------------------

function open(id) { if (location.hash !== `#${id}`) location.hash = id; else show(id); }

async function show(id) {
  if (!/^[0-9a-f]+\.\d+$/.test(id)) return close(false);
  try {
    const found = await get(`record/${id}`);
    state.open = id;
    $("record").replaceChildren(...drawRecord(found));
    $("record").hidden = false;
    $("split").classList.add("open");
    $("record").scrollTop = 0;
    draw();
  } catch (error) { $("record").replaceChildren(h("p", { role: "alert" }, error.message)); $("record").hidden = false; }
}

function close(isByKey = true) {
  state.open = "";
  $("record").hidden = true;
  $("split").classList.remove("open");
  if (isByKey) { history.replaceState(null, "", location.pathname); $("scroller").focus(); }
  draw();
}

function body(text) {
  const whole = shown(text);
  if (whole.length <= LONG) return h("pre", { tabindex: 0 }, whole);
  const made = h("pre", { tabindex: 0 }, whole.slice(0, LONG));
  const more = h("button", { type: "button", onclick: () => { made.textContent = whole; more.remove(); } }, `show all ${whole.length.toLocaleString()} characters`);
  return h("div", {}, made, more);
}

const turns = (value) => (Array.isArray(value) ? value.map((one) => h("div", { class: "turn" }, h("small", {}, shown(one.role)),
  one.content ? body(typeof one.content === "string" ? one.content : JSON.stringify(one.content, null, 1)) : null,
  one.tool_calls?.length ? body(JSON.stringify(one.tool_calls, null, 1)) : null)) : [body(value)]);
const part = (title, ...content) => h("section", {}, h("h3", {}, title), ...content);

function side(title, records, current, label) {
  if (records.length < 2) return null;
  return part(`${title} (${records.length})`, h("div", { class: "side" }, records.map((one) => h("button", { type: "button", "aria-current": one.id === current ? "true" : null, onclick: () => open(one.id) },
    h("b", { class: one.unit == null ? "missing" : null }, one.unit == null ? one.status : fixed(one.unit)), h("small", {}, shown(label(one))), h("span", {}, shown(one.response || one.reason))))));
}

function drawRecord({ record, group, same_sample: same, questions }) {
  const extra = Object.entries(record.extra ?? {});
  const only = (name, value, words) => h("button", { type: "button", onclick: () => { state.only = [name, value]; reload(); } }, words);
  return [
    h("header", {}, h("h2", {}, record.unit == null ? `No score: ${record.cause || record.status}` : `Score ${fixed(record.unit)}`,
      record.score == null ? null : h("small", {}, ` (${short(record.score)} on the judge's scale)`)),
      h("a", { href: `#${record.id}`, title: "Link to this record" }, record.id),
      h("button", { type: "button", onclick: () => close(), "aria-label": "Close" }, "✕")),
    record.reason ? part("Reason", body(record.reason)) : null,
    record.error ? part("Why there is no score", body(record.error)) : null,
    h("dl", {}, ...[["judge", record.judge], ["run", record.run], ["step", record.step], ["status", record.status], ["from", `${record.source} ${record.endpoint}`],
      ["model", record.model], ["time", new Date(record.time * 1000).toLocaleString()], ["took", `${seconds(record.latency_s)}, ${seconds(record.queued_s)} queued`],
      ["sent", `${record.sends} (${record.attempts} attempts)`], ["tokens", `${record.prompt_tokens} + ${record.completion_tokens}`],
      ["cost", record.cost == null ? null : dollars(record.cost)], ["gold", record.gold == null ? null : fixed(record.gold)], ["late", record.late ? "after its deadline" : null]]
      .filter(([, value]) => value != null && value !== "").flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, shown(value))])),
    Object.keys(record.parts ?? {}).length ? part("Criteria and parts", table(["part", "score"], Object.entries(record.parts).map(([name, value]) => [shown(name), fixed(value)]))) : null,
    side("The group, side by side", group, record.id, (one) => `${short(one.response_chars)} characters`),
    group.length > 1 ? only("group", record.group_hash, "list this group") : null,
    side("The same sample, other verdicts", same, record.id, (one) => `${one.judge}, ${one.run}`),
    side("What the panel asked", questions, record.id, (one) => one.judge),
    part("Prompt", ...turns(record.prompt)), part("Response", ...turns(record.turns ?? record.response)),
    record.reference ? part("Reference", body(record.reference)) : null,
    record.request ? part("Request, as it was sent", ...turns(record.request)) : null,
    ...record.exchanges.map((one, n) => part(`Reply ${n + 1} from ${shown(one.endpoint)}`, h("p", { class: "quiet" }, `${seconds(one.latency_s)}, sent ${one.sends} times, ${one.finish_reason || "no reply"}`),
      one.reasoning ? part("Reasoning", body(one.reasoning)) : null, one.reply == null ? null : body(one.reply), one.error ? body(one.error) : null)),
    extra.length ? part("Other fields of the sample", body(JSON.stringify(record.extra, null, 1))) : null,
  ].filter((one) => one != null);
}

// -- what the user does ----------------------------------------------------------------------------------

async function refreshOverview() {
  try { drawOverview(await get("overview", scope())); } catch (error) { say(error.message); }
}

let typing = 0;
function later(work) { clearTimeout(typing); typing = setTimeout(work, 250); }

for (const form of ["scope", "filters"]) $(form).addEventListener("submit", (event) => event.preventDefault());
$("scope").addEventListener("input", () => later(() => { refreshOverview(); reload(); }));
$("filters").addEventListener("input", () => later(() => reload()));
$("clear").addEventListener("click", () => { state.only = null; reload(); });
$("scroller").addEventListener("scroll", soon, { passive: true });
addEventListener("resize", soon);
addEventListener("hashchange", () => show(location.hash.slice(1)));
addEventListener("keydown", (event) => {
  const isTyping = /INPUT|SELECT|TEXTAREA/.test(event.target.tagName);
  if (event.key === "Escape" && state.open) return close();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); $("text").focus(); return; }
  const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
  if (event.key in moves && (event.target === $("scroller") || event.target === document.body)) { event.preventDefault(); choose(state.chosen + moves[event.key]); }
  const found = state.pages.get(Math.floor(state.chosen / PAGE));
  if (event.key === "Enter" && event.target === $("scroller") && Array.isArray(found)) open(found[state.chosen % PAGE].id);
});

let news = null;
const stream = new EventSource("api/events");
stream.onmessage = (event) => {
  const found = JSON.parse(event.data);
  const isFirst = news === null, hasMore = !isFirst && found.records !== news.records;
  news = found;
  drawLive(found);
  $("damage").hidden = !found.damage.length;
  $("damage").textContent = found.damage.join("\n");
  say(found.live.is_live ? `live, ${found.records.toLocaleString()} records` : `${found.records.toLocaleString()} records`, found.live.is_live);
  if (isFirst || hasMore) refreshOverview();
  if (hasMore && $("scroller").scrollTop < ROW) reload({ keep: true });
};
stream.onerror = () => say("the server is gone; the page shows what it knew");

reload().then(() => { if (location.hash.length > 1) show(location.hash.slice(1)); });
