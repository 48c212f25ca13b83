"use strict";
// Asks the server that this page came from for what was seen last, and draws it again.
const place = (id) => document.getElementById(id);
const interval = Number(place("live").dataset.interval);
const dash = "–";
const show = (value, unit = "") => (value === null || value === undefined ? dash : `${format(value)}${unit}`);
const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
let looks = 0;

function fact(list, name, text) {
  const entry = html("div", "", list);
  html("dt", "", entry, name);
  html("dd", "", entry, text);
}

function showFigures(seen) {
  const list = place("figures");
  list.replaceChildren();
  if (!seen.records) return;
  const sent = Object.entries(seen.rate_per_s).filter(([name]) => name.endsWith("_sent")).map(([, rate]) => show(rate));
  fact(list, "Rate asked", `${show(seen.rate_per_s.asked)}/s per stream`);
  fact(list, "Rate sent", `${sent.join(" + ") || dash}/s`);
  fact(list, "Records sent", show(seen.records.sent));
  fact(list, "Answers", seen.records.answers === undefined ? "in the table" : show(seen.records.answers));
  fact(list, "Lag at most", show(seen.records.lag_at_most));
  const { n, p50, p90 } = seen.latency_ms;
  fact(list, `Latency so far, of ${format(n)} drawn`, `p50 ${show(p50, " ms")}, p90 ${show(p90, " ms")}`);
}

function showQueries(seen) {
  const body = place("queries");
  body.replaceChildren();
  for (const query of seen.queries) {
    const row = html("tr", "", body);
    html("th", "", row, query.name).scope = "row";
    for (let at = 0; at < 4; at += 1) {
      const check = query.checks[at];
      const cell = html("td", "", row, check ? undefined : dash);
      if (check) html("span", `word ${check.status}`, cell, check.word);
    }
    html("td", "num", row, show(query.p90_ms, " ms"));
  }
}

function take(seen) {
  const [strong, text] = place("now").children;
  place("now").className = `verdict ${seen.error ? "failed" : "going"}`;
  const step = seen.step ? `${seen.step.query ? `${seen.step.query}: ` : ""}${seen.step.name}, ${format(Math.round(seen.step.seconds))} s` : seen.query ?? "";
  strong.textContent = `${seen.state} · ${clock(seen.elapsed_s)}${seen.over ? "" : ` · ${step}`}`;
  text.textContent = [seen.error, ...seen.notes].filter(Boolean).join("; ");
  showFigures(seen);
  showQueries(seen);
  Object.assign(charts, seen.charts);
  for (const figure of figures) {
    figure.querySelector(".legend")?.remove();
    draw(figure);
    legend(figure, charts[figure.dataset.chart]);
  }
  looks += 1;
  document.documentElement.dataset.looks = String(looks);
  document.documentElement.dataset.drawn = String(figures.filter((figure) => figure.querySelector("svg .line")).length);
}

async function ask() {
  try {
    const answer = await fetch("live.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(`the server says ${answer.status}`);
    const seen = await answer.json();
    take(seen);
    if (seen.over) { document.documentElement.dataset.over = "yes"; return; }
  } catch (error) {
    if (!(error instanceof TypeError)) { report(error); throw error; }
    // Nobody answers any more: what was seen last stays.
    place("hint").textContent = "The live view has ended; what stands here was seen last.";
    document.documentElement.dataset.over = "gone";
    return;
  }
  setTimeout(ask, interval);
}
ask();
