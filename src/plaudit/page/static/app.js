// The page: panels that answer questions about a run, and every verdict with its evidence.

import { bySteps, byTime, curves, h, heat, short, spark } from "./charts.js";

const $ = (id) => document.getElementById(id);
const ROW = 31, HEAD = 32, PAGE = 100, AHEAD = 12, LONG = 20000, TALLEST = 15e6;
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

const MOST_CHARTS = 6;

const state = { total: 0, pages: new Map(), chosen: 0, open: "", query: "", only: null };

// A text as it may be shown: what is invisible or turns the direction of writing is named.
const shown = (text) => String(text ?? "").replace(HIDDEN, (c) => `‹U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);
// A judge by its kind and the beginning of its version.
const judgeName = (name) => shown(name).replace(/^(\S+) [\w-]*?([0-9a-f]{8})[0-9a-f]{4,}$/, "$1 $2");
const percent = (part, all) => (all ? share(part / all) : "–");
const share = (value) => (value == null ? "–" : `${value && value < 0.001 ? "<0.1" : +(100 * value).toFixed(1)}%`);
const seconds = (value) => (value == null ? "–" : value < 0.001 ? (value ? "<1 ms" : "0 s") : value < 1 ? `${Math.round(value * 1000)} ms` :
  value < 120 ? `${+value.toPrecision(3)} s` : value < 7200 ? `${Math.round(value / 60)} min` : `${+(value / 3600).toPrecision(3)} h`);
const dollars = (value) => (value == null ? "no price" : `$${value && value < 0.01 ? +value.toPrecision(2) : value.toFixed(2)}`);
const fixed = (value) => (value == null ? "–" : value.toFixed(2));
const count = (number, one, many = `${one}s`) => `${short(number)} ${number === 1 ? one : many}`;

async function get(path, parameters) {
  const answer = await fetch(`api/${path}?${parameters ?? ""}`);
  const body = await answer.json();
  if (answer.status === 401) askForToken();
  if (!answer.ok) throw Object.assign(new Error(body.error?.message ?? body.error ?? answer.statusText), { status: answer.status });
  return body;
}

// A server with a token: it is sent once, and the browser then holds a cookie that reads this page and nothing else.
async function logIn(token) {
  const answer = await fetch("api/login", { method: "POST", body: "{}", headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` } });
  if (!answer.ok) return askForToken("This is not the server's token.");
  $("login").hidden = true;
  begin();
}

function askForToken(why = "This server shows its page to those who have its token.") {
  $("login").hidden = false;
  $("login-why").textContent = why;
  say("closed");
  $("token").focus();
}

const CHOICES = ["run", "judge", "steps", "status", "text", "sort"];

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
  if (state.only) found.set(state.only.name, state.only.value);
  return found;
}

// The address of the page says what is chosen, so that it can be passed on.
function remember(id = location.hash.slice(1)) {
  const found = new URLSearchParams();
  for (const name of CHOICES) if ($(name).value && $(name).value !== "time:desc") found.set(name, $(name).value);
  if (state.only) found.set(`only-${state.only.name}`, state.only.value);
  const query = found.toString();
  history.replaceState(null, "", `${location.pathname}${query ? `?${query}` : ""}${id ? `#${id}` : ""}`);
}

function recall() {
  const found = new URLSearchParams(location.search);
  for (const name of CHOICES) {
    if (!found.has(name)) continue;
    if (["run", "judge", "status"].includes(name)) choices(name, [found.get(name)]);
    $(name).value = found.get(name);
  }
  for (const name of Object.keys(ONLY)) if (found.has(`only-${name}`)) state.only = { name, value: found.get(`only-${name}`) };
}

const ONLY = { group: () => "one group", sample: () => "one sample", cause: (value) => `cause: ${value}`, steps: (value) => `step ${value}` };

function say(text, isLive = false) {
  if ($("state").textContent !== text) $("state").textContent = text;
  $("state").classList.toggle("live", isLive);
}

// -- panels ----------------------------------------------------------------------------------------------

const BROWSABLE = "a, button, [tabindex]";

function panel(id, question, ...content) {
  const old = $(id), made = h("section", { class: old.className, id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, question), ...content);
  const focused = [...old.querySelectorAll(BROWSABLE)].indexOf(document.activeElement);
  old.replaceWith(made);
  if (focused >= 0) made.querySelectorAll(BROWSABLE)[focused]?.focus();
}

const figures = (...items) => h("ul", { class: "figures" }, items.filter(Boolean).map(([value, name, isBad]) =>
  h("li", {}, h("b", { class: isBad ? "warn" : null }, value), h("span", {}, name))));


// A column whose name ends with a space holds words; the others hold numbers.
const table = (label, head, rows) => h("div", { class: "wide-table", tabindex: 0, role: "region", "aria-label": label }, h("table", {},
  h("thead", {}, h("tr", {}, head.map((one) => h("th", { scope: "col", class: one.endsWith(" ") ? null : "number" }, one)))),
  h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, n) => h("td", { class: head[n].endsWith(" ") ? null : "number" }, typeof cell === "number" ? short(cell) : cell)))))));

const quiet = (...words) => h("p", { class: "quiet" }, ...words);

function only(name, value) {
  state.only = { name, value };
  reload();
  $("browser").scrollIntoView();
}

function drawOverview(found) {
  const { trend, money } = found, { x, columns } = trend;
  const isByStep = trend.by === "step", by = isByStep ? "step" : "time", axis = isByStep ? bySteps : byTime;
  const pick = (name) => columns.map((one) => one[name]);
  const part = (name, all = "records") => columns.map((one) => (one[all] ? one[name] / one[all] : null));
  const missing = found.missing.reduce((sum, one) => sum + one.count, 0);
  const groups = columns.reduce((sum, one) => sum + one.groups, 0), flat = columns.reduce((sum, one) => sum + one.flat, 0);
  // What holds now: the last step; where there are no steps, everything.
  const end = isByStep && columns.length > 1 ? columns[columns.length - 1] : null;
  const place = end ? `at step ${Math.round(end.x)}` : "overall";
  const width = columns.length > 1 ? x[1] - x[0] : 1;
  const lastOf = (i) => Math.max(Math.round(x[i]), Math.ceil(x[i] + width) - 1);
  const onpick = isByStep ? (i) => listSteps(Math.round(x[i]), lastOf(i)) : null;
  const common = { x, axis, onpick };
  const since = Object.fromEntries(found.findings.map((one) => [one.about, one.since]).reverse());
  drawFindings(found.findings, lastOf(x.length - 1));
  const hasGold = columns.some((one) => one.gold != null);
  const now = end ?? { ...found.score, flat, groups, gold: found.gold.mean };

  panel("alive", "Is there a reward signal?",
    found.records ? figures([fixed(now.mean), `mean score ${place}`], end && [fixed(found.score.mean), "over all steps"], hasGold && [fixed(now.gold), "gold", now.gold != null && now.mean - now.gold > 0.2], [fixed(now.std), "spread"],
      [percent(now.flat, now.groups), "groups without spread", now.groups && now.flat / now.groups > 0.5]) : quiet("no verdict yet"),
    curves({ ...common, mark: since.sound ?? since.alive, high: 1, height: 220, label: `Mean score by ${by}`, unit: fixed, band: { name: "80% of scores", low: pick("p10"), high: pick("p90") },
      series: [{ name: "mean score", values: pick("mean") }, ...(hasGold ? [{ name: "gold: the true score", values: pick("gold") }] : []),
        ...(groups ? [{ name: "groups without spread", look: 3, unit: share, values: part("flat", "groups") }] : [])] }),
    isByStep ? quiet("Click a step to see its verdicts, best first.") : null);

  const judged = found.judges.filter((one) => one.histograms.length);
  panel("histogram", `How are scores spread, ${isByStep ? "step by step" : "over time"}?`,
    ...(judged.length ? [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Histograms of each judge" }, judged.flatMap((one) => [h("h3", { title: shown(one.judge) }, judgeName(one.judge)),
      heat({ ...common, onpick: null, x: one.histograms.map((item) => item.x), columns: one.histograms.map((item) => item.counts), height: judged.length > 1 ? 120 : 230, label: `Histograms of the scores of ${shown(one.judge)} by ${by}` })]))] :
      [heat({ ...common, columns: pick("histogram"), height: 250, label: `Histograms of scores from 0 to 1 by ${by}` })]),
    quiet("Each column is a histogram of scores from 0 to 1: a stronger colour means more."));

  const correlations = pick("length_correlation"), lastOne = correlations.reduce((best, one, i) => (one == null ? best : i), -1);
  panel("length", "Does it reward length?",
    figures([found.length.correlation == null ? "–" : found.length.correlation.toFixed(2), "correlation overall", Math.abs(found.length.correlation ?? 0) > 0.5],
      isByStep && lastOne >= 0 && columns.length > 1 && [correlations[lastOne].toFixed(2), `at step ${Math.round(x[lastOne])}`, Math.abs(correlations[lastOne]) > 0.5]),
    curves({ ...common, low: -1, high: 1, height: 120, label: `Correlation of length and score by ${by}`, unit: fixed, series: [{ name: "correlation of length and score", values: correlations, look: 1 }] }),
    curves({ ...common, mark: since.length, height: 120, label: `Mean length of responses by ${by}`, series: [{ name: "characters per response", values: pick("chars"), look: 2 }] }));

  const unsound = ["unreadable", "refused", "flagged"].filter((name) => columns.some((one) => one.unsound[name]));
  const hasCanaries = found.canaries.seen > 0;
  panel("sound", "Is the judge reliable?",
    table("Judges", ["judge ", "verdicts", "mean", "scores ", ...(hasGold ? ["gold gap"] : []), ...(hasCanaries ? ["canaries"] : []), "unreadable", "declined", "flagged"], found.judges.map((one) => [
      h("span", { title: shown(one.judge) }, judgeName(one.judge)), one.records, fixed(one.mean), spark(one.histogram, `Scores of ${shown(one.judge)} from 0 to 1`),
      ...(hasGold ? [h("span", { class: Math.abs(one.gold_gap ?? 0) > 0.2 ? "warn" : null }, fixed(one.gold_gap))] : []),
      ...(hasCanaries ? [h("span", { class: one.canaries.passed ? "warn" : null }, one.canaries.seen ? `${one.canaries.passed} of ${one.canaries.seen} passed` : "–")] : []),
      ...["unreadable", "refused", "flagged"].map((name) => percent(one.by_status[name] ?? 0, one.records))])),
    hasGold || hasCanaries || unsound.length ? curves({ ...common, mark: since.sound, height: 130, label: `Signs of an unsound judge by ${by}`, unit: share, series: [
      ...(hasGold ? [{ name: "gold gap", unit: fixed, values: pick("gold_gap"), look: 1 }] : []),
      ...(hasCanaries ? [{ name: "canaries passed", values: columns.map((one) => (one.canaries.seen ? one.canaries.passed / one.canaries.seen : null)), look: 2 }] : []),
      ...unsound.map((name, n) => ({ name: name === "refused" ? "declined" : name, values: columns.map((one) => one.unsound[name] / one.records), look: n ? 0 : 3 }))] }) : null,
    hasGold ? quiet("Gold gap: the mean score minus the true score of the samples. If it grows, the policy is gaming the judge.") :
      quiet("No sample has a true score. Put ", h("code", {}, "gold"), " (0 to 1) into ", h("code", {}, "extra"), " to see whether the policy is gaming the judge."),
    hasCanaries ? quiet("Canaries are wrong answers among the samples. ", h("button", { type: "button", class: "link", onclick: () => { $("status").value = "canary"; reload(); $("browser").scrollIntoView(); } }, "List them")) : null);

  panel("lost", "What fails?",
    figures([short(missing), "without a score", missing > 0.2 * found.records], [percent(missing, found.records), "of all verdicts"]),
    missing ? curves({ ...common, mark: since.lost, height: 100, label: `Share without a score by ${by}`, unit: share, yText: share, series: [{ name: "share without a score", values: part("missing"), look: 1 }] }) : quiet("Every sample has a score."),
    ...found.missing.map((one) => h("div", { class: "cause" }, h("p", {}, h("button", { type: "button", class: "link", onclick: () => only("cause", one.cause) }, one.cause || "unknown"), ` ${short(one.count)}`),
      h("ul", {}, one.messages.filter((message) => message.error !== one.cause).map((message) => h("li", {}, message.count > 1 ? `${short(message.count)}× ` : null, h("a", { href: `#${message.id}` }, shown(message.error).slice(0, 200) || message.id)))))));

  drawMoney = () => {
    const budget = news?.budget;
    panel("money", "What does it cost?",
      figures([dollars(money.spent), "spent"], budget && [dollars(budget.left), `left of ${dollars(budget.limit)}`, budget.left < 0.1 * budget.limit], budget?.assumed && [dollars(budget.assumed), "set aside for calls without a reply, at their highest possible cost"], [dollars(money.saved), "saved by cache and sharing"],
        money.spent != null && found.records && [dollars((1000 * money.spent) / found.records), "for 1,000 verdicts"]),
      figures([short(money.calls), "verdicts from calls"], [short(money.without_call), "without a call"], [short(money.prompt_tokens), "prompt tokens"], [short(money.completion_tokens), "completion tokens"]),
      columns.some((one) => one.spent) ? curves({ ...common, height: 100, label: `Dollars spent by ${by}`, unit: dollars, yText: (value) => `$${short(value)}`, series: [{ name: isByStep ? "$ a step" : "$", values: pick("spent"), look: 2 }] }) :
        money.spent == null && money.calls ? quiet("No endpoint has a price: set ", h("code", {}, "price"), " to see money.") : null);
  };
  drawMoney();

  const { latency_s: latency, queued_s: queued } = found, ranks = ["p50", "p95", "p99"];
  panel("time", "Where does the time go?",
    latency.p50 == null ? quiet("no call yet") : table("Seconds of a call", ["", ...ranks].map((one) => one || " "), [["queue", ...ranks.map((name) => seconds(queued[name]))], ["endpoint", ...ranks.map((name) => seconds(latency[name]))]]),
    latency.p50 == null ? null : curves({ ...common, height: 120, label: `Seconds of a call by ${by}`, unit: seconds, yText: seconds, series: [{ name: "endpoint p50", values: columns.map((one) => one.latency_s.p50) },
      { name: "endpoint p95", values: columns.map((one) => one.latency_s.p95), look: 1 }, { name: "queue p95", values: columns.map((one) => one.queued_s.p95), look: 3 }] }));

  choices("run", Object.keys(found.choices.runs)); choices("judge", found.choices.judges);
  choices("status", ["missing", ...(hasCanaries ? ["canary"] : []), ...Object.keys(found.by_status)]);
}

// What stands out, in sentences: for those who do not know where to look.
function drawFindings(findings, last) {
  $("findings").hidden = !findings.length;
  if (!findings.length) return;
  panel("findings", "What stands out", h("ul", {}, findings.map((one) => h("li", {}, one.text, " ",
    h("button", { type: "button", class: "link", onclick: () => listSteps(Math.round(one.since), last) }, "Show these verdicts")))));
}

function listSteps(first, last) {
  $("sort").value = "unit:desc";
  only("steps", first === last ? `${first}` : `${first}-${last}`);
}

let drawMoney = () => {};

function choices(id, words) {
  const select = $(id), chosen = select.value;
  const have = [...select.options].map((one) => one.value);
  for (const word of words) if (!have.includes(word)) select.append(h("option", { value: word }, id === "judge" ? judgeName(word) : shown(word)));
  select.value = chosen;
}

const plainly = (value) => (value === true ? "yes" : value === false ? "no" : shown(value));

function setting(value) {
  if (value === null || typeof value !== "object") return plainly(value);
  return h("ul", {}, Object.entries(value).filter(([, one]) => one != null && one.length !== 0).map(([name, one]) =>
    h("li", {}, `${shown(name)}: `, name === "price" ? `$${one[0]} for a million prompt tokens, $${one[1]} for a million completion tokens` : plainly(one))));
}

function drawLive({ live, endpoints, sessions }) {
  panel("waiting", "Is the GPU waiting?",
    live.is_live ? figures([short(live.waiting), "samples without a verdict"], [seconds(live.waiting ? live.oldest_s : 0), "age of the oldest batch"],
      [live.waiting ? (live.eta_s == null ? "–" : seconds(live.eta_s)) : "0 s", "until all are judged"], [`${short(Math.round(live.per_s * 10) / 10)}/s`, "verdicts"]) :
      quiet(live.last_at ? `No run is in progress; the last one ended at ${new Date(live.last_at * 1000).toLocaleString()}.` : "No run is in progress."),
    curves({ x: live.series.at, axis: byTime, height: live.is_live ? 120 : 170, isWhole: true, label: "Samples without a verdict", series: [{ name: "samples without a verdict", values: live.series.waiting }] }));
  $("endpoints").className = `panel ${endpoints.length > 1 ? "full" : "wide"}`;
  $("settings").className = `panel ${endpoints.length > 1 ? "wide" : "full"}`;
  panel("endpoints", "How loaded is each endpoint?", endpoints.length > MOST_CHARTS ? endpointTable(endpoints) : h("div", { class: "endpoints" }, endpoints.map(endpointCharts)), endpoints.length ? null : quiet("no call yet"));
  const last = sessions[sessions.length - 1];
  panel("settings", "Which settings are in use?", last ? h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Settings" }, h("dl", { class: "settings" }, ...Object.entries({ run: last.run, started: new Date(last.started * 1000).toLocaleString(), ...last.settings })
    .filter(([, value]) => value != null && value.length !== 0).flatMap(([name, value]) => [value].flat().map((one) => h("div", {}, h("dt", {}, shown(name)), h("dd", {}, setting(one))))))) : quiet("none recorded"));
  drawMoney();
}

const away = (state) => (state === "closed" ? null : h("span", { class: "warn" }, state === "open" ? " gets no calls: it is away" : ` ${state}`));

function endpointCharts(one) {
  const common = { x: one.at, axis: byTime, height: 120 }, has = (values) => values.some(Boolean);
  const charts = [curves({ ...common, isWhole: true, label: `Calls at once at ${shown(one.name)}`, ceiling: 3 * Math.max(...one.in_flight) || Infinity, series: [{ name: "limit", values: one.limit, look: 3 }, { name: "in flight", values: one.in_flight, look: 0 }] }),
    curves({ ...common, label: `Calls a second at ${shown(one.name)}`, ceiling: 3 * Math.max(...one.answered_per_s, ...one.rate_limited_per_s) || Infinity, series: [{ name: "answered/s", values: one.answered_per_s, look: 0 }, ...(has(one.pace) ? [{ name: "pace it keeps to", values: one.pace, look: 3 }] : []),
      ...(has(one.rate_limited_per_s) ? [{ name: "rate limited/s", values: one.rate_limited_per_s, look: 1 }] : [])] })];
  return h("div", {}, h("h3", {}, shown(one.name), away(one.state)), h("div", { class: "charts" }, charts),
    quiet(`${short(one.ok)} answered, ${short(one.rate_limited)} rate limited, ${short(one.failed)} failed`));
}

// Many endpoints, one line each: who is away, rate limited or busiest stands first.
function endpointTable(endpoints) {
  const last = (values) => values[values.length - 1], trouble = (one) => [one.state !== "closed", one.rate_limited + one.failed, one.ok];
  const ordered = [...endpoints].sort((a, b) => { const [x, y] = [trouble(a), trouble(b)], n = x.findIndex((value, i) => value !== y[i]); return n < 0 ? 0 : y[n] - x[n]; });
  return table("Endpoints", ["endpoint ", "in flight", "limit", "pace", "answered", "rate limited", "failed"], ordered.map((one) => [
    h("span", {}, shown(one.name), away(one.state)), last(one.in_flight), last(one.limit) ?? "–", last(one.pace) ? `${short(last(one.pace))}/s` : "–", one.ok,
    h("span", { class: one.rate_limited > 0.1 * (one.ok + one.rate_limited) ? "warn" : null }, short(one.rate_limited)), h("span", { class: one.failed > 0.1 * (one.ok + one.failed) ? "warn" : null }, short(one.failed))]));
}

// -- the list --------------------------------------------------------------------------------------------

async function reload({ keep = false } = {}) {
  const query = filters().toString();
  if (!keep || query !== state.query) { $("scroller").scrollTop = 0; state.chosen = 0; }
  state.query = query;
  state.pages = new Map();
  $("clear").hidden = !state.only;
  if (state.only) $("clear").textContent = `${ONLY[state.only.name](state.only.value)} ✕`;
  for (const head of document.querySelectorAll("#scroller th[data-sort]")) {
    const [order, way] = $("sort").value.split(":");
    head.setAttribute("aria-sort", head.dataset.sort !== order ? "none" : way === "desc" ? "descending" : "ascending");
  }
  remember();
  const busy = setTimeout(() => { $("count").textContent = "searching …"; }, 400);
  try {
    await page(Math.floor(list().top / PAGE));
    draw();
    return true;
  } catch (error) { $("count").textContent = error.message; return false; } finally { clearTimeout(busy); }
}

function page(number) {
  if (!state.pages.has(number)) {
    const query = state.query, parameters = new URLSearchParams(query);
    parameters.set("offset", number * PAGE); parameters.set("limit", PAGE);
    state.pages.set(number, get("records", parameters).then((found) => {
      if (state.query !== query) return;
      state.pages.set(number, found.rows);
      state.total = found.total;
      $("count").textContent = found.total === found.all ? short(found.all) : `${found.total.toLocaleString("en")} of ${found.all.toLocaleString("en")}`;
    }));
  }
  return state.pages.get(number);
}

// Where the list is scrolled to. No browser scrolls over the pixels of a million rows: there a row has a smaller share
// of the scroll bar than it is tall.
function list() {
  const box = $("scroller"), height = Math.min(state.total * ROW, TALLEST), fit = (box.clientHeight - HEAD) / ROW;
  const share = height < TALLEST ? ROW : (height + HEAD - box.clientHeight) / (state.total - fit);
  return { height, fit, share, top: box.scrollTop / share };
}

function draw() {
  const box = $("scroller"), { height, top } = list();
  const first = Math.max(0, Math.floor(top) - AHEAD);
  const last = Math.min(state.total, first + Math.ceil(box.clientHeight / ROW) + 2 * AHEAD);
  const wanted = [];
  for (let number = first; number < last; number++) {
    const found = state.pages.get(Math.floor(number / PAGE)), isThere = Array.isArray(found);
    if (!isThere) page(Math.floor(number / PAGE)).then(soon, () => {});
    wanted.push([number, isThere ? found[number % PAGE] : null]);
  }
  $("table").setAttribute("aria-rowcount", state.total + 1);
  $("none").hidden = state.total > 0;
  $("none").firstElementChild.textContent = news?.records ? "No verdict matches; change the filters." : "No verdict yet.";
  const above = Math.max(0, Math.round(box.scrollTop - (top - first) * ROW));
  gap("above", above);
  gap("below", Math.max(0, height - above - (last - first) * ROW));
  place(wanted);
}

// Rows that stay where they are keep their elements: to scroll on costs what comes into sight.
const kept = new Map();

function place(wanted) {
  const fits = new Map(wanted.map(([number, found]) => [`${number} ${found?.id} ${number === state.chosen}`, [number, found]]));
  for (const [key, element] of kept) if (!fits.has(key)) { element.remove(); kept.delete(key); }
  let next = $("above").nextElementSibling;
  for (const [key, [number, found]] of fits) {
    if (kept.has(key)) { next = kept.get(key).nextElementSibling; continue; }
    const made = row(number, found);
    kept.set(key, made);
    $("rows").insertBefore(made, next);
  }
}

function gap(id, height) {
  $(id).firstElementChild.style.height = `${height}px`;
  $(id).hidden = !height;
}

function row(number, found) {
  if (!found) return h("tr", { class: "row" }, h("td", {}, "…"));
  const isChosen = number === state.chosen;
  return h("tr", { class: `row${isChosen ? " chosen" : ""}`, "data-id": found.id, "aria-rowindex": number + 2, "aria-current": isChosen ? "true" : null,
    onclick: () => { state.chosen = number; open(found.id); draw(); } },
    h("td", {}, h("span", { class: found.unit == null ? "score missing" : "score" }, fixed(found.unit)), level(found.unit)),
    h("td", { class: found.unit == null ? "missing" : null }, found.status), h("td", { class: "number" }, found.step ?? ""), h("td", {}, shown(found.response)),
    h("td", {}, shown(found.reason)), h("td", { class: "number" }, short(found.response_chars)), h("td", { class: "number" }, fixed(found.latency_s)));
}

function level(value) {
  if (value == null) return null;
  const made = h("span", { class: "level", "aria-hidden": "true" }, h("i"));
  made.firstChild.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
  return made;
}

let isDrawing = false;
function soon() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => { isDrawing = false; draw(); });
}

function choose(number) {
  state.chosen = Math.max(0, Math.min(state.total - 1, number));
  const { top, fit, share } = list();
  if (state.chosen < top) $("scroller").scrollTop = state.chosen * share;
  else if (state.chosen + 1 > top + fit) $("scroller").scrollTop = Math.ceil((state.chosen + 1 - fit) * share);
  draw();
  const found = state.pages.get(Math.floor(state.chosen / PAGE))?.[state.chosen % PAGE];
  if (found) $("chosen").textContent = `${state.chosen + 1} of ${state.total}: score ${fixed(found.unit)}, ${found.status}, ${shown(found.response).slice(0, 100)}`;
}

// -- one record ------------------------------------------------------------------------------------------

function open(id) { if (location.hash !== `#${id}`) location.hash = id; else show(id); }

async function show(id) {
  if (!/^([0-9a-f]+\.\d+|[0-9a-f]{16})$/.test(id)) return close(false);
  const found = await get(`record/${id}`).catch((error) => error);
  if (location.hash.slice(1) !== id) return;  // another one was opened meanwhile
  state.open = found.record?.id ?? id;
  $("record").replaceChildren(...(found.record ? drawRecord(found) : drawMissing(id, found)));
  $("record").hidden = false;
  $("split").classList.add("open");
  $("record").scrollTop = 0;
  if (matchMedia("(max-width: 60em)").matches) $("record").scrollIntoView();
  if (state.isByKey) $("record").focus();
  state.isByKey = false;
  draw();
}

function close(isByKey = true) {
  state.open = "";
  $("record").hidden = true;
  $("split").classList.remove("open");
  if (isByKey) { remember(""); $("scroller").focus(); }
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

// Records beside each other, the best first: each with a line about it, and what it says.
function side(title, records, current, label, text) {
  if (records.length < 2) return null;
  const ordered = [...records].sort((a, b) => (b.unit ?? -1) - (a.unit ?? -1));
  return part(`${title} (${records.length})`, h("div", { class: "side" }, ordered.map((one) => h("button", { type: "button", "aria-current": one.id === current ? "true" : null, onclick: () => open(one.id) },
    h("b", { class: one.unit == null ? "missing" : null }, one.unit == null ? one.status : fixed(one.unit)), h("small", {}, label(one)), h("span", {}, shown(text(one)))))));
}

// Open the record before or after this one in the list.
function step(by) {
  choose(state.chosen + by);
  const found = state.pages.get(Math.floor(state.chosen / PAGE));
  if (Array.isArray(found)) open(found[state.chosen % PAGE].id);
}

const closing = () => h("button", { type: "button", onclick: () => close(), "aria-label": "Close", title: "Close (Esc)" }, "✕");

function drawMissing(id, error) {
  const why = error.status === 404 ? "It is in another journal, or was dropped for newer records." : error.message;
  return [h("header", {}, h("h2", {}, `There is no record ${shown(id)} here`), h("span", { class: "buttons" }, closing())), h("p", { role: "alert" }, why)];
}

function drawRecord({ record, group, same_sample: same, questions }) {
  const extra = Object.entries(record.extra ?? {});
  return [
    h("header", {}, h("h2", {}, record.unit == null ? `No score: ${record.cause || record.status}` : `Score ${fixed(record.unit)}`,
      record.score == null ? null : h("small", {}, ` (${short(record.score)} on the judge's scale)`)),
      h("a", { href: `#${record.id}`, title: "Link to this record" }, record.id),
      h("span", { class: "buttons" }, h("button", { type: "button", onclick: () => step(-1), "aria-label": "Previous verdict", title: "Previous verdict (k)" }, "↑"),
        h("button", { type: "button", onclick: () => step(1), "aria-label": "Next verdict", title: "Next verdict (j)" }, "↓"),
        closing())),
    record.reason ? part("Reason", body(record.reason)) : null,
    record.error ? part("Why there is no score", body(record.error)) : null,
    h("dl", {}, ...[["judge", record.judge], ["run", record.run], ["step", record.step], ["status", record.status],
      ["answered", { call: record.endpoint && `by a call to ${record.endpoint}`, cache: "from the cache", shared: "shared with an equal request" }[record.source] ?? record.source],
      ["model", record.model], ["time", new Date(record.time * 1000).toLocaleString()], ["took", `${seconds(record.latency_s)} at the endpoint, ${seconds(record.queued_s)} in our queue`],
      ["sent", record.sends ? `${count(record.sends, "time")}, ${count(record.attempts, "attempt")}` : null], ["tokens", `${short(record.prompt_tokens)} in the prompt, ${short(record.completion_tokens)} in the reply`],
      ["cost", record.cost == null ? null : dollars(record.cost)], ["gold", record.gold == null ? null : fixed(record.gold)], ["late", record.late ? "it came after its deadline, and the caller did not get it" : null]]
      .filter(([, value]) => value != null && value !== "").flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, shown(value))])),
    Object.keys(record.parts ?? {}).length ? part("Criteria and parts", table("Criteria and parts", ["part ", "score"], Object.entries(record.parts).map(([name, value]) => [shown(name), fixed(value)]))) : null,
    side("The group, side by side", group, record.id, (one) => count(one.response_chars, "character"), (one) => one.response || one.reason),
    group.length > 1 ? h("button", { type: "button", onclick: () => only("group", record.group_hash) }, "List this group") : null,
    side("Verdicts on the same sample", same, record.id, (one) => `${judgeName(one.judge)}, run ${shown(one.run)}`, (one) => one.reason),
    side("What the panel asked", questions, record.id, (one) => judgeName(one.judge), (one) => one.reason || one.response),
    ...(record.prompt || record.response || record.request ? [part("Prompt", ...turns(record.prompt)), part("Response", ...turns(record.turns ?? record.response))] :
      [h("p", { class: "quiet" }, "The journal has no texts of this record: its run kept none, or they are damaged.")]),
    record.reference ? part("Reference", body(record.reference)) : null,
    record.request ? part("Request as sent", ...turns(record.request)) : null,
    ...record.exchanges.map((one, n) => part(`Reply ${n + 1} from ${shown(one.endpoint)}`, h("p", { class: "quiet" }, `${seconds(one.latency_s)}, sent ${count(one.sends, "time")}, ${one.finish_reason ? `finished: ${shown(one.finish_reason)}` : "no reply"}`),
      one.reasoning ? part("Reasoning", body(one.reasoning)) : null, one.reply == null ? null : body(one.reply), one.error ? body(one.error) : null)),
    extra.length ? part("Other fields of the sample", body(JSON.stringify(record.extra, null, 1))) : null,
  ].filter((one) => one != null);
}

// -- what the user does ----------------------------------------------------------------------------------

// A large journal that is being written is looked at less often: at most a sixth of the time goes into it.
let overviewDue = 0;

async function refreshOverview() {
  const began = performance.now();
  overviewDue = Infinity;
  try { drawOverview(await get("overview", scope())); } catch (error) { say(error.message); }
  overviewDue = performance.now() + 5 * (performance.now() - began);
}

let typing = 0;
function later(work) { clearTimeout(typing); typing = setTimeout(work, 250); }

for (const form of ["scope", "filters"]) $(form).addEventListener("submit", (event) => event.preventDefault());
$("scope").addEventListener("input", () => later(() => { if (!$("steps").checkValidity()) return say("Steps: write 40 or 40-60"); refreshOverview(); reload(); }));
$("filters").addEventListener("input", () => later(() => reload()));
$("clear").addEventListener("click", () => { state.only = null; reload(); $("scroller").focus(); });
for (const head of document.querySelectorAll("#scroller th[data-sort]")) head.firstElementChild.addEventListener("click", () => {
  const options = [`${head.dataset.sort}:desc`, `${head.dataset.sort}:asc`];
  $("sort").value = $("sort").value === options[0] ? options[1] : options[0];
  reload();
});
$("scroller").addEventListener("scroll", soon, { passive: true });
addEventListener("resize", soon);
addEventListener("hashchange", () => show(location.hash.slice(1)));
addEventListener("keydown", (event) => {
  const isTyping = /INPUT|SELECT|TEXTAREA/.test(event.target.tagName);
  if (event.key === "Escape" && state.open) return close();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); $("text").focus(); return; }
  if (state.open && (event.key === "j" || event.key === "k")) return step(event.key === "j" ? 1 : -1);
  const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
  if (event.key in moves && (event.target === $("scroller") || event.target === document.body)) { event.preventDefault(); choose(state.chosen + moves[event.key]); }
  const found = state.pages.get(Math.floor(state.chosen / PAGE));
  if (event.key === "Enter" && event.target === $("scroller") && Array.isArray(found) && found[state.chosen % PAGE]) { state.isByKey = true; open(found[state.chosen % PAGE].id); }
});

let news = null, isStale = false, stream = null;

let unseen = null;

function hear(found) {
  if (document.hidden) { unseen = found; return; }  // a tab that nobody sees is drawn when somebody does
  unseen = null;
  const isFirst = news === null, hasMore = !isFirst && found.records !== news.records;
  news = found;
  drawLive(found);
  $("damage").hidden = !found.damage.length;
  $("damage").textContent = found.damage.join("\n");
  say(`${found.live.is_live ? "live, " : ""}${found.records.toLocaleString("en")} ${found.records === 1 ? "record" : "records"}`, found.live.is_live);
  isStale ||= hasMore;
  if (isStale && performance.now() > overviewDue) { isStale = false; refreshOverview(); }
  if (hasMore && list().top < 1) reload({ keep: true });
}

async function begin() {
  const drawn = refreshOverview();  // at the same time: with a million records it takes a second
  if (!await reload()) return;
  if (location.hash.length > 1) Promise.all([show(location.hash.slice(1)), drawn]).then(() => { if (state.open) $("record").scrollIntoView(); });
  listen();
}

// A browser connects again by itself where a server is away, and gives up where one answers with an error.
function listen() {
  stream?.close();
  stream = new EventSource("api/events");
  stream.onmessage = (event) => hear(JSON.parse(event.data));
  stream.onerror = () => {
    say("the server is gone; the page shows what it knew");
    if (stream.readyState === EventSource.CLOSED) setTimeout(async () => { if (await reload({ keep: true }) || $("login").hidden) listen(); }, 5000);
  };
}

document.addEventListener("visibilitychange", () => { if (!document.hidden && unseen) hear(unseen); });

$("login").addEventListener("submit", (event) => { event.preventDefault(); const token = $("token").value.trim(); $("token").value = ""; if (token) logIn(token); });
recall();
const given = /^#token=(.+)$/.exec(location.hash);
if (given) { remember(""); logIn(decodeURIComponent(given[1])); } else begin();
