// Adds the kind `heat`: rows of cells over time, coloured by percent, in labelled groups.
"use strict";

(() => {
  const DOWN = 255;
  const GROUP_GAP = 6, GROUP_LEAST = 16, AXIS = 26, TALLEST = 620;

  function draw(_figure, plot, chart) {
    if (chart.rows.length === 0 || chart.times.length === 0) {
      Plots.html("p", "quiet", plot, "no data");
      return;
    }
    const cells = Uint8Array.from(atob(chart.cells), (character) => character.charCodeAt(0));
    const canvas = Plots.html("canvas", "", plot);
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${chart.title}. Arrow keys read cells.`);
    const style = getComputedStyle(plot);
    const pen = canvas.getContext("2d");
    pen.font = fontOf(style);
    const names = chart.groups.map((group) => pen.measureText(group.name).width);
    const area = layout(chart, plot.clientWidth, Math.max(...names));
    paint(canvas, chart, cells, area, style);
    key(plot);
    read(plot, canvas, chart, cells, area);
  }

  const fontOf = (style) => `12px ${style.fontFamily}`;

  // Where each group and row lies, in pixels.
  function layout(chart, width, widestName) {
    const left = Math.min(Math.ceil(widestName) + 12, Math.round(width * 0.3));
    const row = Math.max(2, Math.min(14, TALLEST / chart.rows.length));
    const groups = [];
    let top = 0, first = 0;
    for (const group of chart.groups) {
      const height = Math.max(GROUP_LEAST, Math.round(group.rows * row));
      groups.push({ ...group, first, top, height });
      top += height + GROUP_GAP;
      first += group.rows;
    }
    return { left, width: width - left, right: width, groups, bottom: top - GROUP_GAP };
  }

  function paint(canvas, chart, cells, area, style) {
    const ratio = window.devicePixelRatio || 1;
    const height = area.bottom + AXIS;
    canvas.width = Math.round(area.right * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.imageSmoothingEnabled = false;
    pen.font = fontOf(style);
    const image = picture(chart, cells, palette(style));
    const columns = chart.times.length;
    for (const group of area.groups) {
      pen.drawImage(image, 0, group.first, columns, group.rows,
        area.left, group.top, area.width, group.height);
      pen.fillStyle = style.getPropertyValue("--ink-soft");
      pen.textBaseline = "middle";
      const level = group.top + Math.min(group.height, 20) / 2;
      pen.fillText(fitted(pen, group.name, area.left - 8), 0, level);
    }
    timeAxis(pen, chart, area, style);
  }

  function fitted(pen, text, room) {
    if (pen.measureText(text).width <= room) return text;
    let length = text.length;
    while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > room) length--;
    return `${text.slice(0, length)}…`;
  }

  function timeAxis(pen, chart, area, style) {
    const axis = { unit: "duration", scale: "linear", min: chart.times[0], max: endOf(chart) };
    const scale = Plots.scaleOf(axis, [], area.left, area.right, false);
    pen.fillStyle = pen.strokeStyle = style.getPropertyValue("--ink-soft");
    pen.textBaseline = "top";
    for (const { value, text } of scale.ticks) {
      const place = scale.pixel(value), half = pen.measureText(text).width / 2;
      pen.fillRect(Math.min(place, area.right - 1), area.bottom, 1, 4);
      const left = Math.min(Math.max(place - half, area.left), area.right - 2 * half);
      pen.fillText(text, left, area.bottom + 8);
    }
  }

  function endOf(chart) {
    const { times } = chart, last = times.length - 1;
    return times[last] + (last > 0 ? (times[last] - times[0]) / last : 1);
  }

  // One pixel per cell, scaled up when it is drawn.
  function picture(chart, cells, colours) {
    const image = document.createElement("canvas");
    image.width = chart.times.length;
    image.height = chart.rows.length;
    const pen = image.getContext("2d");
    const pixels = pen.createImageData(image.width, image.height);
    for (let index = 0; index < image.width * image.height; index++) {
      const cell = cells[index] ?? DOWN;
      pixels.data.set(cell === DOWN ? colours.down : colours.steps[Math.min(cell, 100)], index * 4);
    }
    pen.putImageData(pixels, 0, 0);
    return image;
  }

  function palette(style) {
    const stops = style.getPropertyValue("--heat").split(",").map(channels);
    const steps = Array.from({ length: 101 }, (_, percent) => {
      const place = (percent / 100) * (stops.length - 1);
      const below = Math.min(Math.floor(place), stops.length - 2), share = place - below;
      return stops[below].map((from, channel) => from + (stops[below + 1][channel] - from) * share);
    });
    return { steps, down: channels(style.getPropertyValue("--heat-down")) };
  }

  function channels(colour) {
    const number = parseInt(colour.trim().slice(1), 16);
    return [(number >> 16) & 255, (number >> 8) & 255, number & 255, 255];
  }

  function key(plot) {
    const row = Plots.html("div", "key", plot);
    Plots.html("span", "", row, "0 %");
    Plots.html("span", "ramp", row);
    Plots.html("span", "", row, "100 %");
    Plots.html("span", "down", row);
    Plots.html("span", "", row, "down");
  }

  function read(plot, canvas, chart, cells, area) {
    const tip = Plots.readOut(plot);
    const frame = Plots.html("div", "cell", plot);
    frame.hidden = true;
    let row = 0, column = 0;
    const columns = chart.times.length;
    const leave = () => { tip.hide(); frame.hidden = true; };
    const show = () => {
      const group = area.groups.find((group) => row < group.first + group.rows);
      const height = group.height / group.rows;
      const top = group.top + (row - group.first) * height;
      const left = area.left + (column / columns) * area.width;
      const cell = cells[row * columns + column] ?? DOWN;
      frame.hidden = false;
      Object.assign(frame.style, {
        left: `${left - 1}px`, top: `${top - 1}px`,
        width: `${area.width / columns + 2}px`, height: `${height + 2}px`,
      });
      tip.show(left, Math.max(0, top - 20), chart.rows[row], [
        { name: "model", text: group.name || "–" },
        { name: "from", text: Plots.duration(chart.times[column]) },
        { name: chart.measure, text: cell === DOWN ? "down" : `${cell} %` },
      ]);
    };
    const at = (across, down) => {
      const group = area.groups.find(({ top, height }) => down >= top && down < top + height);
      if (!group || across < area.left) return leave();
      row = group.first + Math.floor(((down - group.top) / group.height) * group.rows);
      column = Math.min(columns - 1, Math.floor(((across - area.left) / area.width) * columns));
      show();
    };
    const move = (dx, dy) => {
      row = Math.max(0, Math.min(chart.rows.length - 1, row + dy));
      column = Math.max(0, Math.min(columns - 1, column + dx));
      show();
    };
    Plots.follow(canvas, { at, move, leave });
  }

  Plots.kinds.heat = draw;
})();
