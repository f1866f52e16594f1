// Adds the kind `box`: percentiles and the mean of each category as a box with whiskers.
"use strict";

(() => {
  const ROW = 30, HALF = 8, AXIS = 42, TOP = 4;
  const CHARACTER = 7.2; // width of a name's character in pixels
  const PARTS = [
    ["95th percentile", "p95"], ["75th percentile", "p75"], ["median", "p50"],
    ["25th percentile", "p25"], ["5th percentile", "p5"], ["mean", "mean"],
  ];

  function draw(_figure, plot, chart) {
    const spreads = chart.boxes.map((box) => box.spread).filter((spread) => spread);
    if (spreads.length === 0) {
      Plots.html("p", "quiet", plot, "no data");
      return;
    }
    const width = plot.clientWidth, bottom = TOP + ROW * chart.boxes.length;
    const widest = Math.max(...chart.boxes.map((box) => box.name.length)) * CHARACTER;
    const left = Math.ceil(Math.min(widest, width * 0.34)) + 14, right = width - 18;
    const values = spreads.flatMap((spread) => Object.values(spread));
    const x = Plots.scaleOf(chart.x, values, left, right, false);
    const canvas = Plots.svg("svg", {
      viewBox: `0 0 ${width} ${bottom + AXIS}`, role: "img", tabindex: 0,
      "aria-label": `${chart.title}. Arrow keys read values.`,
    }, plot);
    const cursor = Plots.svg("g", { class: "cursor" }, canvas);
    axis(canvas, chart, x, left, right, bottom);
    chart.boxes.forEach((box, index) => {
      const middle = TOP + ROW * (index + 0.5);
      const name = shortened(box.name, left - 14);
      Plots.svg("text", { x: 0, y: middle + 4, class: "category" }, canvas, name);
      if (box.spread) drawBox(canvas, box, x, middle);
    });
    read(plot, canvas, chart, cursor, x);
  }

  function shortened(name, room) {
    const most = Math.max(2, Math.floor(room / CHARACTER + 0.5));
    return name.length <= most ? name : `${name.slice(0, most - 1)}…`;
  }

  function axis(canvas, chart, x, left, right, bottom) {
    for (const { value, text } of x.ticks) {
      const place = x.pixel(value);
      Plots.svg("line", { x1: place, x2: place, y1: TOP, y2: bottom, class: "grid" }, canvas);
      Plots.svg("line", { x1: place, x2: place, y1: bottom, y2: bottom + 4, class: "axis" }, canvas);
      Plots.svg("text", { x: place, y: bottom + 17, class: "tick middle" }, canvas, text);
    }
    Plots.svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }, canvas);
    Plots.svg("text", { x: right, y: bottom + 36, class: "label end" }, canvas, chart.x.label);
  }

  function drawBox(canvas, { slot, spread }, x, middle) {
    const group = Plots.svg("g", { class: Plots.slotClass(slot) }, canvas);
    const at = (part) => x.pixel(spread[part]);
    const line = (x1, x2, y1, y2, name) =>
      Plots.svg("line", { x1, x2, y1: middle + y1, y2: middle + y2, class: name }, group);
    line(at("p5"), at("p25"), 0, 0, "whisker");
    line(at("p75"), at("p95"), 0, 0, "whisker");
    for (const end of ["p5", "p95"]) line(at(end), at(end), -HALF / 2, HALF / 2, "whisker");
    Plots.svg("rect", {
      x: at("p25"), y: middle - HALF, width: Math.max(1, at("p75") - at("p25")), height: 2 * HALF,
      rx: 2, class: "box",
    }, group);
    line(at("p50"), at("p50"), -HALF, HALF, "median");
    Plots.svg("circle", { cx: at("mean"), cy: middle, r: 3.5, class: "mean" }, group);
  }

  function read(plot, canvas, chart, cursor, x) {
    const tip = Plots.readOut(plot);
    let row = -1;
    const leave = () => { cursor.replaceChildren(); tip.hide(); row = -1; };
    const show = (index, across) => {
      row = Math.max(0, Math.min(chart.boxes.length - 1, index));
      const { name, spread } = chart.boxes[row], top = TOP + ROW * row;
      cursor.replaceChildren();
      const stripe = { x: 0, y: top, width: plot.clientWidth, height: ROW, class: "stripe" };
      Plots.svg("rect", stripe, cursor);
      const text = (part) => (spread ? Plots.written(spread[part], chart.x.unit) : "–");
      const lines = PARTS.map(([label, part]) => ({ name: label, text: text(part) }));
      tip.show(across, top + ROW + 4, name, lines);
    };
    Plots.follow(canvas, {
      at: (across, down) => show(Math.floor((down - TOP) / ROW), across),
      move: (_dx, dy) => show(row + Math.sign(dy), x.pixel(x.low)),
      leave,
    });
  }

  Plots.kinds.box = draw;
})();
