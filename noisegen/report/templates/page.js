"use strict";

// Tooltips: the title of a group becomes the text of #tip, which follows the pointer.
const tip = document.getElementById("tip");
for (const title of document.querySelectorAll("svg title")) {
  const owner = title.parentNode;
  if (owner.classList.contains("tip")) owner.dataset.tip = title.textContent;
  else owner.setAttribute("aria-label", title.textContent);
  title.remove();
}
const hide = () => { tip.hidden = true; };
document.addEventListener("pointermove", (event) => {
  const owner = event.target.closest?.("[data-tip]");
  if (!owner) return hide();
  tip.textContent = owner.dataset.tip;
  tip.hidden = false;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18;
  const top = below + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : below;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, top)}px`;
});
document.addEventListener("scroll", hide, { passive: true });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

// Tables that are sorted by their heads: as numbers where all cells hold one.
const shown = (cell) => cell?.textContent.trim() ?? "";
const raw = (cell) => cell?.dataset.value ?? shown(cell);
const number = (text) => (text.trim() ? Number(text) : Number.NaN);
const compare = (a, b) => {
  const [x, y] = [number(a), number(b)];
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
};
const sort = (table, column, head) => {
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const body = table.tBodies[0];
  const known = (row) => !row.cells[column]?.classList.contains("none");
  const rows = [...body.rows].sort((a, b) => known(b) - known(a)
    || (up ? 1 : -1) * compare(raw(a.cells[column]), raw(b.cells[column])));
  body.append(...rows);
};
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, column, head));
    head.append(button);
  });
}

// Tools: made here, so that a page without script has no dead buttons.
const made = (name, options) => Object.assign(document.createElement(name), options);
const tools = (before, ...parts) => {
  const box = made("div", { className: "tools" });
  box.append(...parts);
  before.before(box);
};
const search = (label, rows) => {
  const field = made("input", { type: "search", placeholder: label });
  field.setAttribute("aria-label", label);
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  return field;
};
const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
// A text that a spreadsheet would take for a formula begins with an apostrophe, figures do not.
const inert = (value) => value.replace(/^(?=[=+\-@\t\r])(?![-+.e\d ]+$)/, "'");
const csv = (table) => [...table.rows]
  .map((row) => [...row.cells].map((cell) => quoted(inert(raw(cell)))).join(",")).join("\n");
const copy = async (content) => {
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    const area = made("textarea", { value: content });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};
for (const table of document.querySelectorAll("table.copied")) {
  const button = made("button", { type: "button", textContent: "Copy as CSV" });
  button.addEventListener("click", async () => {
    await copy(csv(table));
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy as CSV"; }, 2000);
  });
  tools(table.parentNode, search("Filter the rows", [...table.tBodies[0].rows]), button);
}
