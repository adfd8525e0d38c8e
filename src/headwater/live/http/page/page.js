// The live page: reads server-sent events and draws them. All that comes from data is put in as text, never as markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 190, LEFT = 46, BOTTOM = 22, TOP = 8;
const COLORS = ["#1f6fb2", "#c26a1b", "#2e8b57", "#a83279", "#6a5acd", "#8a6d1f", "#0f8b8d", "#b0413e", "#5b7f2b", "#7a5c99", "#3d7ea6", "#946b54"];
const ODD_SHOWN = 20;
const RETRY_MILLISECONDS = 2000;

const at = (id) => document.getElementById(id);
const odd = [];
let wide = 560;  // of the chart that is drawn

function element(name, words, kind) {
  const made = document.createElement(name);
  if (words !== undefined) made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

function shape(name, attributes, words) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });
}

// Charts

function frame(place, low, high, first, final) {
  wide = Math.max(200, at(place).clientWidth);
  const svg = shape("svg", { viewBox: `0 0 ${wide} ${HEIGHT}`, role: "img" });
  svg.append(shape("line", { class: "axis", x1: LEFT, x2: wide, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
  svg.append(shape("text", { x: LEFT - 4, y: TOP + 9, "text-anchor": "end" }, number(high)));
  svg.append(shape("text", { x: LEFT - 4, y: HEIGHT - BOTTOM, "text-anchor": "end" }, number(low)));
  svg.append(shape("text", { x: LEFT, y: HEIGHT - 6 }, first));
  svg.append(shape("text", { x: wide - 2, y: HEIGHT - 6, "text-anchor": "end" }, final));
  at(place).replaceChildren(svg);
  return svg;
}

const across = (share) => LEFT + share * (wide - LEFT - 2);
const up = (share) => HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);

function curve(values, low, high, attributes) {
  const span = high - low || 1;
  let path = "", pen = "M";
  values.forEach(([x, y]) => {
    if (y === null || y === undefined) { pen = "M"; return; }
    path += `${pen}${across(x).toFixed(1)} ${up((y - low) / span).toFixed(1)}`;
    pen = "L";
  });
  return shape("path", { class: "curve", ...attributes, d: path || "M0 0" });
}

function drawRates(rates) {
  const most = Math.max(1, ...rates.map((one) => one[0]));
  const svg = frame("rate", 0, most, "2 min ago", "now");
  [[0, "curve"], [1, "curve red"]].forEach(([which, kind]) => {
    svg.append(curve(rates.map((one, place) => [place / (rates.length - 1), one[which]]), 0, most, { class: kind }));
  });
}

function drawScores(bounds, counts, threshold) {
  const most = Math.max(1, ...counts), step = bounds[1] - bounds[0];
  const low = bounds[0] - step, high = bounds[bounds.length - 1] + step;
  const svg = frame("scores", 0, most, "≤ " + number(bounds[0]), "> " + number(bounds[bounds.length - 1]));
  counts.forEach((count, place) => {
    const tall = count ? Math.max(up(0) - up(count / most), 1) : 0;
    const under = threshold !== null && (place === 0 ? bounds[0] : bounds[Math.min(place, bounds.length - 1)]) <= threshold;
    svg.append(shape("rect", {
      class: under ? "bar low" : "bar", x: across(place / counts.length) + 0.5, width: (wide - LEFT) / counts.length - 1,
      y: up(0) - tall, height: tall,
    }));
  });
  if (threshold !== null) {
    const x = across(Math.min(1, Math.max(0, (threshold - low) / (high - low))));
    svg.append(shape("line", { class: "threshold", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
  }
}

function drawCourse(course) {
  const points = course.points;
  if (!points.length) {
    ["weights", "course"].forEach((place) => at(place).replaceChildren(element("p", "Nothing was learned yet.", "note")));
    return;
  }
  const first = points[0].rows, final = points[points.length - 1].rows;
  const place = (point) => (final > first ? (point.rows - first) / (final - first) : 0.5);
  const words = [number(first) + " rows", number(final)];
  const scores = points.map((point) => point.score).filter((score) => score !== null);
  const low = Math.min(...scores), high = Math.max(...scores);
  if (scores.length) {
    frame("course", low, high, ...words).append(curve(points.map((point) => [place(point), point.score]), low, high, {}));
  }
  const number_of = Math.max(...points.map((point) => point.weights.length));
  const most = Math.max(0.01, ...points.flatMap((point) => point.weights));
  const svg = frame("weights", 0, most, ...words);
  for (let k = 0; k < number_of; k += 1) {
    const made = curve(points.map((point) => [place(point), point.weights[k]]), 0, most, { stroke: COLORS[k % COLORS.length] });
    made.style.stroke = COLORS[k % COLORS.length];
    made.append(shape("title", {}, "component " + k));
    svg.append(made);
  }
}

// Numbers and lists

function drawTiles(now) {
  const recent = now.rates.slice(-10).reduce((sum, one) => sum + one[0], 0) / 10;
  const lag = Object.values(now.lags).reduce((sum, one) => sum + (one || 0), 0);
  const tiles = [
    ["events a second", number(recent)], ["events", number(now.events)], ["odd", number(now.odd)],
    ["refused", number(now.refused), now.refused > 0], ["doubles", number(now.doubles)],
    ["wait to be read", number(lag)], ["wait to be learned", number(now.backlog)], ["rows in the model", number(now.rows)],
    ["drift alarms", number(now.drift_alarms), now.drift_alarms > 0],
    ["snapshot", now.snapshot_age === null ? "none" : `${Math.round(now.snapshot_age)} s ago`],
  ];
  at("tiles").replaceChildren(...tiles.map(([about, value, bad]) => {
    const made = element("div", undefined, bad ? "tile bad" : "tile");
    made.append(element("b", value), element("span", about));
    return made;
  }));
}

const KNOWN = ["event", "score", "anomaly_score", "pvalue", "odd", "learned", "reasons", "double"];

function drawOdd(events) {
  if (!events.length) return;
  odd.unshift(...events.reverse());
  odd.splice(ODD_SHOWN);
  at("odd").replaceChildren(...odd.map((one) => {
    const made = element("div", undefined, "event");
    const fields = Object.entries(one).filter(([name]) => !KNOWN.includes(name)).map(([name, value]) => `${name} ${value}`);
    made.append(element("p", [`event ${number(one.event)}`, ...fields, `score ${number(one.score, 4)}`, `p ${number(one.pvalue, 2)}`].join(" · ")));
    (one.reasons || []).forEach((reason) => {
      const usual = reason.low === null ? `expected ${number(reason.expected)}` : `expected ${number(reason.expected)} (${number(reason.low)} to ${number(reason.high)})`;
      made.append(element("p", `${reason.column} ${number(reason.value)}, ${usual}`, "reason"));
    });
    return made;
  }));
}

function drawList(place, items, empty) {
  at(place).replaceChildren(...(items.length ? items : [[empty, ""]]).map(([words, kind]) => element("li", words, kind)));
}

function show(kind, value) {
  at("main").hidden = false;
  at("ask").hidden = true;
  if (kind === "course") {
    drawCourse(value);
    drawList("health", value.health.map((one) => [one.text, one.action ? "action" : ""]), "Nothing is wrong.");
    return;
  }
  if (kind !== "now") { say(value.error || kind, "lost"); return; }
  at("model").textContent = `${value.model}: ${value.columns.slice(0, 8).join(", ")}${value.columns.length > 8 ? ", …" : ""}`;
  say(value.learns ? "live, learning" : "live, frozen", "live");
  drawTiles(value);
  drawRates(value.rates);
  drawScores(value.score_bounds, value.score_counts, value.threshold);
  drawOdd(value.new_odd);
  drawList("refused", value.refusals.reverse().map((one) => [`${one.error}: ${one.raw}`, ""]), "None.");
}

function say(words, kind) {
  at("state").textContent = words;
  at("state").className = kind;
}

// The stream

let token = new URLSearchParams(location.hash.slice(1)).get("token") || "";

async function follow() {
  const answer = await fetch("look", { headers: token ? { Authorization: "Bearer " + token } : {} });
  if (answer.status === 401) {
    say("a token is needed", "lost");
    at("ask").hidden = false;
    return false;
  }
  if (!answer.ok) throw new Error("status " + answer.status);
  odd.length = 0;
  const reader = answer.body.getReader(), decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return true;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [first, second] = part.split("\n");
      show(first.slice("event: ".length), JSON.parse(second.slice("data: ".length)));
    }
  }
}

async function run() {
  let again = true;
  try { again = await follow(); } catch (error) { console.info(String(error)); }
  if (again) {
    say("lost, trying again", "lost");
    setTimeout(run, RETRY_MILLISECONDS);
  }
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value;
  run();
});
run();
