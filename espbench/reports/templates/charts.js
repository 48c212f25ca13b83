"use strict";
// Draws the charts from the document beside it: SVG, texts only as text, no network.
// What goes wrong is written where a test, or a reader of the page's source, finds it.
const failures = [];
const report = (text) => {
  failures.push(String(text));
  document.documentElement.dataset.errors = failures.join(" | ");
};
addEventListener("error", (event) => report(event.message));
addEventListener("unhandledrejection", (event) => report(event.reason));
document.addEventListener("securitypolicyviolation", (event) => report(`blocked: ${event.blockedURI} ${event.violatedDirective}`));

const charts = JSON.parse(document.getElementById("charts").textContent);
const SVG = "http://www.w3.org/2000/svg";
const figures = [...document.querySelectorAll("figure[data-chart]")];
const zooms = new Map(); // group -> [from, to]
const states = new Map(); // figure -> what was drawn

const make = (name, attributes, parent, text) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
};
const html = (name, className, parent, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
};
const round = (value) => Math.round(value * 10) / 10;
const format = (value) => {
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  const text = (value + 0).toLocaleString("en-US", { maximumFractionDigits: digits }); // never "-0"
  return text.replace("-", "\u2212");
};
const short = (value) => {
  if (value >= 1e6) return `${format(value / 1e6)}M`;
  return value >= 1e4 ? `${format(value / 1e3)}k` : format(value);
};
const percent = (odds) => {
  const share = 100 - 100 / odds;
  return `${share.toLocaleString("en-US", { maximumFractionDigits: Math.max(0, Math.ceil(Math.log10(odds)) - 2) })} %`;
};
function steps(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) ticks.push(Math.round(at / step) * step);
  return ticks;
}
const powers = (low, high) => {
  const ticks = [];
  for (let at = low; at <= high * 1.0001; at *= 10) ticks.push(at);
  return ticks;
};

// The least and the greatest value between two times.
function seen(chart, from, to) {
  let least = Infinity;
  let most = 0;
  const take = (low, high) => { least = Math.min(least, low); most = Math.max(most, high); };
  for (const series of chart.series) {
    if (series.draw === "cloud") {
      const { cells, columns, rows, time_s: [begin, end], ms: [, high] } = series;
      for (let at = 0; at < cells.length; at += 3) {
        const time = begin + ((cells[at] + 0.5) / columns) * (end - begin);
        if (time >= from && time <= to) take(high ** (cells[at + 1] / rows), high ** ((cells[at + 1] + 1) / rows));
      }
      continue;
    }
    series.x.forEach((x, at) => {
      if (x >= from && x <= to && series.y[at] !== null) take(series.y[at], series.y[at]);
    });
  }
  return [Number.isFinite(least) ? least : 0, most];
}

function scales(chart, group, width, height) {
  const odds = chart.kind === "odds";
  const [from, to] = odds ? [1, Math.max(10, ...chart.series.map((each) => each.x.at(-1) ?? 1))] : zooms.get(group) ?? chart.x;
  let [least, most] = seen(chart, from, to);
  const log = chart.scale === "log";
  // A limit that is near is shown; one far away would squeeze all else.
  if (log) for (const { value } of chart.marks) if (value < most * 20) most = Math.max(most, value * 1.1);
  const base = log ? 10 ** Math.floor(Math.log10(Math.max(least, 1)) + 1e-9) : 0;
  const top = log ? Math.max(base * 10, 10 ** (Math.ceil(Math.log10(Math.max(most, 1) * 1.05) * 4) / 4)) : Math.max(most * 1.08, 1);
  // Above the plot stands what would hide data inside it: unit, limit, warm-up.
  const area = { left: 50, right: width - 12, top: chart.wide ? 36 : 28, bottom: height - 24 };
  const x = (value) => {
    const share = odds ? Math.log(value) / Math.log(to) : (value - from) / (to - from);
    return area.left + share * (area.right - area.left);
  };
  const y = (value) => {
    const share = log ? Math.log10(Math.max(value, base) / base) / Math.log10(top / base) : value / top;
    return area.bottom - Math.min(share, 1.02) * (area.bottom - area.top);
  };
  const back = (pixel) => {
    const share = (pixel - area.left) / (area.right - area.left);
    return odds ? to ** share : from + share * (to - from);
  };
  return { odds, from, to, base, top, log, area, x, y, back };
}

function axes(svg, chart, scale) {
  const { area, x, y, odds, log, from, to, base, top } = scale;
  const rows = log ? powers(base, top) : steps(0, top, chart.whole ? Math.min(4, top) : 4);
  for (const value of rows) {
    make("line", { class: "grid", x1: area.left, x2: area.right, y1: round(y(value)), y2: round(y(value)) }, svg);
    const label = log && value === 1 ? "≤ 1" : short(value);
    make("text", { x: area.left - 7, y: round(y(value)) + 4, "text-anchor": "end" }, svg, label);
  }
  const columns = odds ? [1, 2, ...powers(10, to), ...(to < 400 ? [4, 20] : [])] : steps(from, to, (area.right - area.left) / 90);
  const taken = [];
  for (const value of columns) {
    if (taken.some((other) => Math.abs(other - x(value)) < 44)) continue;
    taken.push(x(value));
    make("line", { class: "axis", x1: round(x(value)), x2: round(x(value)), y1: area.bottom, y2: area.bottom + 4 }, svg);
    make("text", { x: round(x(value)), y: area.bottom + 17, "text-anchor": "middle" }, svg, odds ? percent(value) : `${format(value)} s`);
  }
  make("line", { class: "axis", x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom }, svg);
  make("text", { x: 0, y: 11 }, svg, chart.unit);
}

function path(series, scale) {
  if (series.step_s) return staircase(series, scale);
  let text = "";
  let pen = false;
  series.x.forEach((value, at) => {
    if (series.y[at] === null) { pen = false; return; }
    text += `${pen ? "L" : "M"}${round(scale.x(value))} ${round(scale.y(series.y[at]))}`;
    // A lone point between gaps would be invisible as a line.
    if (!pen && (series.y[at + 1] ?? null) === null) text += "h0.1";
    pen = true;
  });
  return text;
}

// A figure of an interval holds from its begin to its end: a slope between two would be made up.
function staircase(series, scale) {
  const half = series.step_s / 2;
  let [text, pen] = ["", false];
  series.x.forEach((value, at) => {
    if (series.y[at] === null) { pen = false; return; }
    text += `${pen ? "L" : "M"}${round(scale.x(value - half))} ${round(scale.y(series.y[at]))}H${round(scale.x(value + half))}`;
    pen = true;
  });
  return text;
}

function drawCloud(parent, series, scale) {
  const { cells, columns, rows, time_s: [begin, end], ms: [, high] } = series;
  const most = cells.reduce((found, value, at) => (at % 3 === 2 ? Math.max(found, value) : found), 1);
  const paths = ["", "", "", ""];
  const least = cells.length < 1500 ? 4.5 : cells.length < 9000 ? 3 : 1.8; // a lone dot must be seen
  const cell = scale.x(begin + (end - begin) / columns) - scale.x(begin);
  const wide = Math.max(least, cell);
  for (let at = 0; at < cells.length; at += 3) {
    const time = begin + (cells[at] / columns) * (end - begin);
    if (time < scale.from - 1e-9 || time > scale.to) continue;
    const low = scale.y(high ** (cells[at + 1] / rows));
    const own = low - scale.y(high ** ((cells[at + 1] + 1) / rows));
    const tall = Math.max(least, own);
    // What is drawn larger than its cell keeps the cell's middle.
    const [left, bottom] = [scale.x(time) - (wide - cell) / 2, low + (tall - own) / 2];
    const level = most === 1 ? 2 : Math.min(3, Math.floor((4 * Math.log(cells[at + 2])) / Math.log(most + 0.01)));
    paths[level] += `M${round(left)} ${round(bottom)}h${round(wide)}v${-round(tall)}h${-round(wide)}z`;
  }
  paths.forEach((text, level) => { if (text) make("path", { class: `cloud c${level}`, d: text }, parent); });
}

// How many of the later lines lie on a line for most of its way.
function covering(all, place, scale) {
  const { x, y } = all[place];
  const same = (other) => {
    if (!other.y || other.draw === "dots" || other.y.length !== y.length) return false;
    const shared = y.filter((value, at) => value !== null && other.y[at] !== null && x[at] === other.x[at] && round(scale.y(value)) === round(scale.y(other.y[at])));
    return shared.length > 0.6 * y.length;
  };
  return all.slice(place + 1).filter(same).length;
}

function drawSeries(svg, chart, scale, id) {
  const clip = make("clipPath", { id }, make("defs", {}, svg));
  const { area } = scale;
  make("rect", { x: area.left, y: area.top - 6, width: Math.max(0, area.right - area.left), height: area.bottom - area.top + 8 }, clip);
  const inside = make("g", { "clip-path": `url(#${id})` }, svg);
  for (const [place, series] of chart.series.entries()) {
    if (series.draw === "cloud") { drawCloud(inside, series, scale); continue; }
    if (series.draw === "dots") {
      const dots = series.x.map((value, at) => `M${round(scale.x(value))} ${round(scale.y(series.y[at]))}h0.01`).join("");
      make("path", { class: `line dots t${series.tone}`, d: dots, "stroke-width": 4 }, inside).style.strokeWidth = "4px";
      continue;
    }
    const text = path(series, scale);
    if (!text) continue;
    if (series.fill) {
      const last = round(scale.x(series.x.at(-1)));
      make("path", { class: `area f${series.tone}`, d: `${text}L${last} ${area.bottom}L${round(scale.x(series.x[0]))} ${area.bottom}z` }, inside);
    }
    const shape = make("path", { class: `line t${series.tone}${series.dashed ? " dashed" : ""}`, d: text }, inside);
    // A line that others cover shows on both sides of them.
    const above = covering(chart.series, place, scale);
    if (above) Object.assign(shape.style, { strokeWidth: `${1.6 + 2.6 * above}px`, opacity: 0.4 });
  }
}

function drawPlot(figure, chart, plot) {
  const group = figure.dataset.group;
  const width = Math.max(260, plot.clientWidth);
  const height = chart.wide ? (width < 500 ? 240 : 310) : 220;
  const scale = scales(chart, group, width, height);
  const { area, x, y } = scale;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": chart.title });
  if (chart.kind === "time" && chart.warmup_s > scale.from) {
    const end = Math.min(chart.warmup_s, scale.to);
    make("rect", { class: "warm", x: area.left, y: area.top - 6, width: round(x(end) - area.left), height: area.bottom - area.top + 6 }, svg);
    if (chart.wide) make("text", { x: round(x(end)) - 6, y: area.top - 9, "text-anchor": "end" }, svg, "warm-up");
  }
  axes(svg, chart, scale);
  drawSeries(svg, chart, scale, `clip-${figure.dataset.chart}`);
  for (const mark of chart.marks) {
    const inside = mark.value <= scale.top;
    make("text", { class: "mark-label", x: area.right, y: 11, "text-anchor": "end" }, svg, inside ? mark.label : `${mark.label}, far above`);
    if (!inside) continue;
    const at = round(y(mark.value));
    make("line", { class: "mark", x1: area.left, x2: area.right, y1: at, y2: at }, svg);
  }
  const select = make("rect", { class: "select", y: area.top - 6, height: area.bottom - area.top + 6, width: 0, visibility: "hidden" }, svg);
  const cursor = make("line", { class: "cursor", y1: area.top - 6, y2: area.bottom, visibility: "hidden" }, svg);
  states.set(figure, { chart, scale, cursor, select, svg, width });
  return svg;
}

// Seconds with three figures; the unit is that of the whole chart.
const seconds = (ms) => `${(ms / 1e3).toLocaleString("en-US", { maximumSignificantDigits: 3 })} s`;

function drawStrip(figure, chart, plot) {
  const width = Math.max(260, plot.clientWidth);
  const narrow = width < 520;
  const left = narrow ? 8 : 230;
  const tall = narrow ? 40 : 26;
  const right = width - 76;
  const height = chart.series.length * tall + 26;
  const all = chart.series.flatMap((each) => each.values);
  const top = 10 ** Math.ceil(Math.log10(Math.max(10, chart.most ?? 0, ...all)));
  const x = (value) => left + (Math.log10(Math.max(1, value)) / Math.log10(top)) * (right - left);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": chart.title });
  let free = -Infinity;
  for (const value of powers(1, top)) {
    make("line", { class: "grid", x1: round(x(value)), x2: round(x(value)), y1: 0, y2: height - 22 }, svg);
    const label = value === 1 ? `≤ ${seconds(value)}` : seconds(value);
    const wide = 6.5 * label.length;
    const begin = value === 1 ? x(value) : x(value) - wide / 2;
    if (begin < free) continue;
    free = begin + wide + 10;
    make("text", { x: round(begin + wide / 2), y: height - 6, "text-anchor": "middle" }, svg, label);
  }
  chart.series.forEach((strip, at) => {
    const y = at * tall + (narrow ? 28 : tall / 2);
    const tone = strip.ours ? 1 : 5;
    make("text", { class: strip.ours ? "strong" : "", x: narrow ? left : left - 14, y: narrow ? y - 12 : y + 4, "text-anchor": narrow ? "start" : "end" }, svg, strip.name);
    if (!strip.values.length) { make("text", { x: left, y: y + 4 }, svg, "not published"); return; }
    const [low, middle, high] = strip.values;
    if (high > low) make("line", { class: `range t${tone}`, x1: round(x(low)), x2: round(x(high)), y1: y, y2: y }, svg);
    const second = strip.after ?? null;
    if (second !== null) make("circle", { class: `after f${tone}`, cx: round(x(second)), cy: y, r: 4.5 }, svg);
    make("circle", { class: strip.hollow ? `hollow t${tone}` : `f${tone}`, cx: round(x(middle)), cy: y, r: 4.5 }, svg);
    make("text", { class: strip.ours ? "strong" : "", x: round(Math.max(x(high), x(second ?? 1))) + 11, y: y + 4 }, svg, seconds(middle));
  });
  return svg;
}

function legend(figure, chart) {
  if (chart.kind === "strip" || chart.series.length < 2) return;
  const list = html("ul", "legend", figure);
  for (const series of chart.series) {
    if (series.legend === null) continue;
    const item = html("li", "", list);
    const key = make("svg", { viewBox: "0 0 18 8", "aria-hidden": "true" }, item);
    if (series.draw === "cloud") make("rect", { class: "cloud c1", x: 4, y: 0, width: 8, height: 8 }, key);
    else make("path", { class: `line t${series.tone}${series.dashed ? " dashed" : ""}`, d: "M0 4h18" }, key);
    item.append(series.legend ?? series.name);
  }
}

function draw(figure) {
  const chart = charts[figure.dataset.chart];
  const plot = figure.querySelector(".plot");
  plot.replaceChildren(chart.kind === "strip" ? drawStrip(figure, chart, plot) : drawPlot(figure, chart, plot));
}

function nearest(values, wanted) {
  let best = -1;
  values.forEach((value, at) => { if (best < 0 || Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = at; });
  return best;
}

function follow(figure, at) {
  for (const [other, state] of states) {
    const same = other === figure || (figure.dataset.group && other.dataset.group === figure.dataset.group && !state.scale.odds && !states.get(figure).scale.odds);
    if (!same) continue;
    state.cursor.setAttribute("visibility", at === null ? "hidden" : "visible");
    if (at === null) continue;
    state.cursor.setAttribute("x1", round(state.scale.x(at)));
    state.cursor.setAttribute("x2", round(state.scale.x(at)));
  }
}

// How many records lie in the cloud's column at a time, and between which values.
function within({ cells, columns, rows, time_s: [begin, end], ms: [, high] }, at) {
  const wanted = Math.floor(((at - begin) / (end - begin)) * columns);
  let [count, low, top] = [0, rows, -1];
  for (let cell = 0; cell < cells.length; cell += 3) {
    if (Math.abs(cells[cell] - wanted) > 1) continue;
    count += cells[cell + 2];
    [low, top] = [Math.min(low, cells[cell + 1]), Math.max(top, cells[cell + 1] + 1)];
  }
  if (!count) return "";
  return `${format(count)} ${count === 1 ? "answer" : "answers"} here: ${format(Math.round(high ** (low / rows)))} to ${format(Math.round(high ** (top / rows)))} ms`;
}

function tip(figure, plot, at, pixel) {
  plot.querySelector(".tip")?.remove();
  if (at === null) return;
  const { chart, scale, width } = states.get(figure);
  const box = html("div", "tip", plot);
  html("b", "", box, scale.odds ? percent(at) : `${format(at)} s`);
  for (const series of chart.series) {
    if (series.draw === "cloud") {
      const text = within(series, at);
      if (text) html("div", "", box, text);
      continue;
    }
    const index = nearest(series.x, at);
    const value = series.y[index] ?? null;
    if (value !== null) html("div", "", box, `${series.name}: ${format(value)} ${chart.unit}`);
  }
  const side = pixel > width / 2 ? "right" : "left";
  box.style[side] = `${side === "left" ? pixel + 14 : width - pixel + 14}px`;
}

function zoom(group, range) {
  if (range) zooms.set(group, range); else zooms.delete(group);
  for (const figure of figures) if (figure.dataset.group === group && charts[figure.dataset.chart].kind === "time") draw(figure);
  const button = document.querySelector(`[data-unzoom="${CSS.escape(group)}"]`);
  if (button) button.hidden = !range;
}

function listen(figure) {
  const plot = figure.querySelector(".plot");
  const chart = charts[figure.dataset.chart];
  if (chart.kind === "strip") return;
  let begun = null;
  const place = (event) => {
    const { scale, svg, width } = states.get(figure);
    const frame = svg.getBoundingClientRect();
    const pixel = ((event.clientX - frame.left) / frame.width) * width;
    return Math.min(Math.max(pixel, scale.area.left), scale.area.right);
  };
  plot.addEventListener("pointermove", (event) => {
    const pixel = place(event);
    const { scale, select } = states.get(figure);
    const at = scale.back(pixel);
    follow(figure, at);
    tip(figure, plot, at, pixel);
    if (begun === null) return;
    select.setAttribute("visibility", "visible");
    select.setAttribute("x", Math.min(begun, pixel));
    select.setAttribute("width", Math.abs(pixel - begun));
  });
  plot.addEventListener("pointerleave", () => { follow(figure, null); tip(figure, plot, null); });
  if (chart.kind !== "time") return;
  plot.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    begun = place(event);
    event.preventDefault();
  });
  addEventListener("pointerup", (event) => {
    if (begun === null) return;
    const [low, high] = [begun, place(event)].sort((one, other) => one - other);
    const { scale } = states.get(figure);
    begun = null;
    states.get(figure).select.setAttribute("visibility", "hidden");
    if (high - low > 8) zoom(figure.dataset.group, [scale.back(low), scale.back(high)]);
  });
  plot.addEventListener("dblclick", () => zoom(figure.dataset.group, null));
}

const empty = (text) => text === "" || text === "\u2013";

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = html("button", "", null, head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const body = table.tBodies[0];
      const compare = (one, other) => {
        const [left, right] = [value(one), value(other)];
        const [a, b] = [Number(left), Number(right)];
        // A dash stands last, whichever way the others go.
        if (empty(left) || empty(right)) return empty(left) - empty(right);
        const numeric = left !== "" && right !== "" && !Number.isNaN(a) && !Number.isNaN(b);
        return (numeric ? a - b : left.localeCompare(right)) * (down ? -1 : 1);
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}

let drawn = 0;
for (const figure of figures) {
  try {
    draw(figure);
    legend(figure, charts[figure.dataset.chart]);
    listen(figure);
    drawn += 1;
  } catch (error) { report(`${figure.dataset.chart}: ${error}`); }
}
document.querySelectorAll("table.sortable").forEach(sortable);
document.querySelectorAll("[data-unzoom]").forEach((button) => button.addEventListener("click", () => zoom(button.dataset.unzoom, null)));
let waiting = 0;
addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => figures.forEach(draw), 120); });
addEventListener("beforeprint", () => document.querySelectorAll("details[data-print]").forEach((each) => { each.open = true; }));
document.documentElement.dataset.drawn = String(drawn);
