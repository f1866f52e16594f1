// Draws charts that are described as data: lines, steps, distributions and bars.
// A chart is { kind, title, .. }; `Plots.kinds` maps a kind to the function that draws it, and
// other files add kinds there. Text enters the page through textContent alone.
"use strict";

const Plots = (() => {
  const COLOURS = 6;
  const DASHES = ["", "7 3", "2 3"];
  const SECOND = 1, MINUTE = 60, HOUR = 3600, DAY = 86400;
  const UNITS = [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"], [SECOND, "s"]];
  // Where a logarithmic time axis has ticks: the first list, then the second where room is left.
  const LOG_TIMES = [
    [[0.001, "1 ms"], [1, "1 s"], [MINUTE, "1 min"], [HOUR, "1 h"], [DAY, "1 d"],
      [30 * DAY, "30 d"]],
    [[0.01, "10 ms"], [0.1, "0.1 s"], [10, "10 s"], [10 * MINUTE, "10 min"], [6 * HOUR, "6 h"],
      [7 * DAY, "7 d"], [365 * DAY, "365 d"]],
  ];
  const TIME_STEPS = [
    1, 2, 5, 10, 20, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 3 * DAY, 5 * DAY, 7 * DAY,
    14 * DAY, 30 * DAY, 60 * DAY, 90 * DAY, 180 * DAY, 365 * DAY,
  ];
  const CHARACTER = 6.6; // width of a tick's character in pixels

  const kinds = { line: drawLines, bar: drawBars };

  // Elements

  function svg(tag, attributes, parent, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  function html(tag, className, parent, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  const slotClass = (slot) => `c${slot % COLOURS} d${Math.floor(slot / COLOURS) % DASHES.length}`;
  const dashOf = (slot) => DASHES[Math.floor(slot / COLOURS) % DASHES.length];

  // Numbers

  function duration(seconds) {
    const [size, unit] = UNITS.find(([size]) => Math.abs(seconds) >= 2 * size) || [SECOND, "s"];
    return `${trimmed(seconds / size, 1)} ${unit}`;
  }

  function trimmed(value, decimals) {
    return value.toLocaleString("en", { maximumFractionDigits: decimals });
  }

  function written(value, unit) {
    if (value === null || value === undefined) return "–";
    if (unit === "duration") return duration(value);
    if (unit === "percent") return `${(value * 100).toFixed(1)} %`;
    return trimmed(value, unit === "count" ? (value < 10 ? 1 : 0) : 3);
  }

  // Axes: a scale turns values into pixels, and knows where its ticks are.

  function scaleOf(axis, values, from, to, tidy) {
    const room = Math.max(2, Math.min(10, Math.floor(Math.abs(to - from) / (tidy ? 46 : 62))));
    const finite = values.filter((value) => value !== null);
    const least = finite.reduce((least, value) => Math.min(least, value), Infinity);
    const low = axis.min ?? least;
    const most = finite.reduce((most, value) => Math.max(most, value), -Infinity);
    // What is drawn stays on its card: an end that is given gives way to a larger value.
    const given = axis.max !== undefined && !(most > axis.max);
    const high = given ? axis.max : most;
    if (axis.scale === "log") return logScale(axis, least, high, from, to);
    const start = Number.isFinite(low) ? low : 0;
    return linearScale(axis, start, high, from, to, room, tidy && !given);
  }

  function linearScale(axis, low, high, from, to, room, tidy) {
    if (!(high > low)) high = low + 1;
    const step = stepFor((high - low) / room, axis.unit);
    if (tidy) high = Math.ceil(high / step - 1e-9) * step;
    const unit = UNITS.find(([size]) => step >= size) || [SECOND, "s"];
    const ticks = [];
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-6);
    for (let count = first; count <= last; count++) {
      const value = count * step || 0; // without the sign of a negative zero
      ticks.push({ value, text: tickText(value, axis.unit, unit, step) });
    }
    const pixel = (value) => from + ((value - low) / (high - low)) * (to - from);
    const value = (position) => low + ((position - from) / (to - from)) * (high - low);
    return { low, high, ticks, pixel, value };
  }

  function stepFor(least, unit) {
    if (unit === "duration") return TIME_STEPS.find((step) => step >= least) || least;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= least * 0.999) * power;
    return unit === "count" ? Math.max(1, Math.ceil(step)) : step;
  }

  function tickText(value, unit, [size, name], step) {
    if (unit === "duration") return value === 0 ? "0" : `${trimmed(value / size, 1)} ${name}`;
    if (unit === "percent") return `${trimmed(value * 100, step < 0.01 ? 1 : 0)} %`;
    return trimmed(value, 3);
  }

  // Starts at the tick below the least value, but not below the axis's own least.
  function logScale(axis, least, high, from, to) {
    const floor = Math.max(axis.min ?? 0, 1e-6);
    if (!(high > floor)) high = floor * 10;
    const lists = axis.unit === "duration" ? LOG_TIMES : [powersOfTen(floor, high)];
    const marks = lists.flat();
    const starts = marks.map(([mark]) => mark).filter((mark) => mark >= floor && mark <= least);
    const low = starts.length && Math.max(...starts) < high ? Math.max(...starts) : floor;
    const ends = marks.map(([mark]) => mark).filter((mark) => mark > low);
    high = Math.max(high, Math.min(...ends, high * 10)); // two ticks at least
    const span = Math.log(high / low);
    const pixel = (value) => from + (Math.log(Math.max(value, low) / low) / span) * (to - from);
    const value = (position) => low * Math.exp(((position - from) / (to - from)) * span);
    const ticks = [];
    for (const [mark, name] of marks) {
      if (mark < low * 0.999 || mark > high * 1.001) continue;
      const text = mark <= low * 1.001 && least < low ? `≤ ${name}` : name;
      const half = (text.length * CHARACTER) / 2 + 5, place = pixel(mark);
      if (ticks.some((tick) => Math.abs(tick.place - place) < tick.half + half)) continue;
      ticks.push({ value: mark, text, place, half });
    }
    return { low, high, ticks, pixel, value };
  }

  function powersOfTen(low, high) {
    const marks = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high * 1.001; power++)
      marks.push([10 ** power, trimmed(10 ** power, Math.max(0, -power))]);
    return marks;
  }

  // Read-out: a small box near the pointer that also speaks to screen readers.

  function readOut(plot) {
    const box = html("div", "tip", plot);
    box.setAttribute("aria-live", "polite");
    box.hidden = true;
    function show(left, top, title, rows) {
      box.replaceChildren();
      html("strong", "", box, title);
      for (const row of rows) {
        const line = html("div", "", box);
        if (row.slot !== undefined) html("span", `swatch ${slotClass(row.slot)}`, line);
        html("span", "name", line, row.name);
        html("b", "", line, row.text);
      }
      box.hidden = false;
      const width = box.offsetWidth, room = plot.clientWidth;
      const beside = left + 14 + width <= room ? left + 14 : left - 14 - width;
      box.style.left = `${Math.max(0, Math.min(beside, room - width))}px`;
      box.style.top = `${Math.max(0, Math.min(top, plot.clientHeight - box.offsetHeight))}px`;
    }
    return { show, hide: () => { box.hidden = true; } };
  }

  // Pointer, touch and keys all end in `at(x, y)` or `move(dx, dy)`; `leave` clears.
  function follow(target, { at, move, leave }) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const here = (event) => {
      const frame = target.getBoundingClientRect();
      at(event.clientX - frame.left, event.clientY - frame.top);
    };
    target.addEventListener("pointermove", here);
    target.addEventListener("pointerdown", here);
    target.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") leave();
    });
    target.addEventListener("blur", leave);
    target.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave();
      if (!arrows[event.key]) return;
      event.preventDefault();
      const factor = event.shiftKey ? 10 : 1;
      move(arrows[event.key][0] * factor, arrows[event.key][1] * factor);
    });
  }

  // Lines

  function drawLines(figure, plot, chart, state) {
    const shown = chart.lines.filter((line) => !state.off.has(line.name));
    const width = plot.clientWidth, height = chart.height;
    const heights = chart.lines.flatMap((line) => line.y);
    const top = chart.y.label ? 26 : 8, bottom = height - (chart.x.label ? 42 : 24);
    const y = scaleOf(chart.y, heights, bottom, top, true);
    const widest = Math.max(...y.ticks.map((tick) => tick.text.length));
    const left = Math.ceil(widest * CHARACTER) + 12, right = width - 18;
    const x = scaleOf(chart.x, chart.lines.flatMap((line) => line.x), left, right, false);
    const canvas = svg("svg", {
      viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0,
      "aria-label": `${chart.title}. Arrow keys read values.`,
    }, plot);
    axes(canvas, chart, x, y, { left, right, top, bottom });
    for (const line of shown) drawLine(canvas, line, x, y, bottom);
    const middle = { x: (left + right) / 2, y: (top + bottom) / 2, class: "none" };
    if (heights.length === 0) svg("text", middle, canvas, "no data");
    else readLines(plot, canvas, chart, shown, x, y, { left, right, top, bottom });
    if (!state.legend) state.legend = legend(figure, chart, state);
  }

  function axes(canvas, chart, x, y, { left, right, top, bottom }) {
    for (const { value, text } of y.ticks) {
      const level = y.pixel(value);
      svg("line", { x1: left, x2: right, y1: level, y2: level, class: "grid" }, canvas);
      svg("text", { x: left - 8, y: level + 4, class: "tick end" }, canvas, text);
    }
    for (const { value, text } of x.ticks) {
      const place = x.pixel(value);
      svg("line", { x1: place, x2: place, y1: top, y2: bottom, class: "grid" }, canvas);
      svg("line", { x1: place, x2: place, y1: bottom, y2: bottom + 4, class: "axis" }, canvas);
      svg("text", { x: place, y: bottom + 17, class: "tick middle" }, canvas, text);
    }
    svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }, canvas);
    if (chart.y.label) svg("text", { x: 0, y: 12, class: "label" }, canvas, chart.y.label);
    if (chart.x.label)
      svg("text", { x: right, y: bottom + 36, class: "label end" }, canvas, chart.x.label);
  }

  function drawLine(canvas, line, x, y, bottom) {
    const pieces = piecesOf(line, x, y);
    if (pieces.length === 0) return;
    const dash = line.shape === "dashed" ? "4 3" : line.shape === "area" ? "" : dashOf(line.slot);
    if (line.shape === "area") {
      const down = ({ path, start, end }) => `${path}L${end} ${bottom}L${start} ${bottom}Z`;
      svg("path", { d: pieces.map(down).join(""), class: `fill ${slotClass(line.slot)}` }, canvas);
    }
    const whole = pieces.map(({ path }) => path).join("");
    const mark = svg("path", { d: whole, class: `line ${slotClass(line.slot)}` }, canvas);
    mark.dataset.name = line.name;
    if (dash) mark.setAttribute("stroke-dasharray", dash);
    if (line.shape === "marked") drawDots(canvas, line, x, y);
  }

  function drawDots(canvas, line, x, y) {
    line.x.forEach((value, index) => {
      if (line.y[index] === null) return;
      const place = { cx: x.pixel(value), cy: y.pixel(line.y[index]), r: 3 };
      const dot = svg("circle", { ...place, class: `dot ${slotClass(line.slot)}` }, canvas);
      dot.dataset.name = line.name;
    });
  }

  // The unbroken pieces of a line; a missing value ends one.
  function piecesOf(line, x, y) {
    const pieces = [];
    let piece = null;
    line.x.forEach((value, index) => {
      const height = line.y[index];
      if (value === null || height === null || height === undefined) { piece = null; return; }
      if (line.x[index + 1] <= x.low) return; // a pile at the left edge begins at its top
      const across = x.pixel(value).toFixed(1), up = y.pixel(height).toFixed(1);
      if (!piece) pieces.push(piece = { path: `M${across} ${up}`, start: across, end: across });
      else piece.path += line.shape === "step" ? `H${across}V${up}` : `L${across} ${up}`;
      piece.end = across;
    });
    if (line.shape === "step" && piece) piece.path += `H${x.pixel(x.high).toFixed(1)}`;
    return pieces;
  }

  function readLines(plot, canvas, chart, shown, x, y, { left, right, top, bottom }) {
    const tip = readOut(plot);
    const cursor = svg("g", { class: "cursor" }, canvas);
    const stops = stopsOf(shown);
    let place = left;
    const leave = () => { cursor.replaceChildren(); tip.hide(); };
    const at = (across) => {
      const within = Math.max(left, Math.min(right, across));
      const value = nearest(stops, x.value(within));
      place = stops.length ? x.pixel(value) : within;
      cursor.replaceChildren();
      svg("line", { x1: place, x2: place, y1: top, y2: bottom }, cursor);
      const rows = shown.map((line) => ({ line, height: heightAt(line, value) }));
      for (const { line, height } of rows) {
        if (height === null) continue;
        const dot = { cx: place, cy: y.pixel(height), r: 3.5, class: slotClass(line.slot) };
        svg("circle", dot, cursor);
      }
      rows.sort((one, other) => (other.height ?? -1) - (one.height ?? -1));
      const position = written(value, chart.x.unit);
      tip.show(place, top, stops.length ? `${chart.x.label} ${position}` : position, rows.map(({ line, height }) => ({
        slot: line.slot, name: line.part || line.name, text: written(height, chart.y.unit),
      })));
    };
    const move = (dx) => {
      if (stops.length === 0) return at(place + dx * Math.max(2, (right - left) / 120));
      const next = stops.indexOf(nearest(stops, x.value(place))) + Math.sign(dx);
      at(x.pixel(stops[Math.max(0, Math.min(stops.length - 1, next))]));
    };
    follow(canvas, { at, leave, move });
  }

  // Where marked lines can be read; none where any position will do.
  function stopsOf(lines) {
    if (!lines.every((line) => line.shape === "marked")) return [];
    return [...new Set(lines.flatMap((line) => line.x))].sort((one, other) => one - other);
  }

  function nearest(stops, value) {
    const closer = (best, stop) => (Math.abs(stop - value) < Math.abs(best - value) ? stop : best);
    return stops.length ? stops.reduce(closer) : value;
  }

  // The line's height at a position: the last point at or before it.
  function heightAt(line, value) {
    let low = 0, high = line.x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (line.x[middle] <= value) low = middle + 1; else high = middle;
    }
    if (low === 0) return line.shape === "step" ? 0 : null;
    return line.y[low - 1] ?? null;
  }

  function legend(figure, chart, state) {
    const names = new Map(chart.lines.map((line) => [line.name, line.slot]));
    if (names.size < 2) return true;
    const list = html("div", "legend", figure);
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", "Lines shown");
    for (const [name, slot] of names) {
      const button = html("button", "", list);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      html("span", `swatch ${slotClass(slot)}`, button);
      button.append(name);
      button.addEventListener("click", () => {
        if (!state.off.delete(name)) state.off.add(name);
        button.setAttribute("aria-pressed", String(!state.off.has(name)));
        state.redraw();
      });
      const stress = (on) => () => {
        for (const mark of figure.querySelectorAll(".line, .dot"))
          mark.classList.toggle("faint", on && mark.dataset.name !== name);
      };
      button.addEventListener("pointerenter", stress(true));
      button.addEventListener("pointerleave", stress(false));
      button.addEventListener("focus", stress(true));
      button.addEventListener("blur", stress(false));
    }
    return true;
  }

  // Bars

  function drawBars(_figure, plot, chart) {
    const most = chart.bars.reduce((most, bar) => Math.max(most, bar.value ?? 0), 0);
    html("p", "label", plot, chart.x.label);
    const list = html("ul", "bars", plot);
    list.setAttribute("aria-label", chart.title);
    for (const bar of chart.bars) {
      const row = html("li", bar.best ? "best" : "", list);
      html("span", "name", row, bar.name);
      const track = html("span", "track", row);
      const length = most > 0 ? Math.max(0, bar.value ?? 0) / most : 0;
      if (bar.value === null) track.classList.add("empty");
      const mark = html("span", `bar ${slotClass(bar.slot)}`, track);
      mark.style.width = `${(length * 100).toFixed(2)}%`;
      if (bar.part !== undefined && bar.value > 0) {
        mark.classList.add("whole");
        const part = html("span", "part", mark);
        part.style.width = `${(Math.min(1, bar.part / bar.value) * 100).toFixed(2)}%`;
      }
      html("span", "value", row, bar.best ? `★ ${bar.text}` : bar.text);
    }
  }

  // Draws a chart into a figure, and again when the figure's width changes.
  function draw(figure, chart) {
    figure.stop?.();
    for (const old of figure.querySelectorAll(".plot, .legend")) old.remove();
    const plot = html("div", "plot", figure);
    const state = { off: new Set(), legend: false, redraw };
    let width = 0;
    function redraw() {
      width = plot.clientWidth;
      plot.replaceChildren();
      if (width > 0) kinds[chart.kind](figure, plot, chart, state);
    }
    const watch = new ResizeObserver(() => { if (plot.clientWidth !== width) redraw(); });
    watch.observe(plot);
    document.addEventListener("theme", redraw);
    figure.stop = () => { watch.disconnect(); document.removeEventListener("theme", redraw); };
    redraw();
  }

  return { draw, kinds, html, svg, slotClass, readOut, follow, scaleOf, written, duration };
})();
