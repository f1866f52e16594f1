// Joins the page to its charts: figures, lists that switch, sortable tables, the theme.
"use strict";

(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;

  function drawFigure(figure) {
    const chart = charts[figure.dataset.chart];
    if (chart) Plots.draw(figure, chart);
  }

  // Lists: one kind changes the chart of a figure, the other shows one of several panels.

  function setUpSwitch(list) {
    const panels = [...list.options].map((option) => document.getElementById(option.value));
    const apply = () => {
      if (list.dataset.switch === "panels") {
        panels.forEach((panel, index) => { panel.hidden = index !== list.selectedIndex; });
        return;
      }
      const figure = document.getElementById(list.dataset.target);
      figure.dataset.chart = list.value;
      drawFigure(figure);
    };
    list.addEventListener("change", apply);
    if (list.dataset.switch === "panels") apply();
  }

  // Tables: a heading sorts, and sorts the other way when chosen again.

  function setUpTable(table) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortRows(table.tBodies[0], column, down ? -1 : 1);
      });
    });
  }

  function sortRows(body, column, direction) {
    const keyed = [...body.rows].map((row) => {
      const cell = row.cells[column];
      const text = column === 0;
      const key = text ? cell.textContent : parseFloat(cell.dataset.value);
      return { row, key, last: row.classList.contains("others") || (!text && Number.isNaN(key)) };
    });
    keyed.sort((one, other) => {
      if (one.last !== other.last) return one.last ? 1 : -1;
      if (one.last) return 0;
      if (column === 0) return direction * one.key.localeCompare(other.key);
      return direction * (one.key - other.key);
    });
    body.append(...keyed.map(({ row }) => row));
  }

  // Theme: the system's, unless the reader or the address (#dark, #light) says otherwise.

  function setUpTheme() {
    const button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const changed = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
      document.dispatchEvent(new Event("theme"));
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      changed();
    });
    addEventListener("hashchange", () => {
      if (!/^#(dark|light)$/.test(location.hash)) return;
      root.dataset.theme = location.hash.slice(1);
      changed();
    });
    system.addEventListener("change", changed);
    let before; // paper is light
    addEventListener("beforeprint", () => {
      before = root.dataset.theme;
      root.dataset.theme = "light";
      changed();
    });
    addEventListener("afterprint", () => {
      if (before) root.dataset.theme = before; else delete root.dataset.theme;
      changed();
    });
    changed();
  }

  setUpTheme();
  document.querySelectorAll("table.sortable").forEach(setUpTable);
  document.querySelectorAll("select[data-switch]").forEach(setUpSwitch);
  document.querySelectorAll("figure[data-chart]").forEach(drawFigure);
})();
