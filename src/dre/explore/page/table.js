// A table of the rows that pass all filters: only rows on the screen are rendered, columns sort, a row pins its point.
const rowPixels = () => (isTouch() ? 44 : 27); // as in panel.css
const MAX_SCROLL = 8e6; // pixels; browsers limit the height of an element
const CHARACTER = 7.5, NARROWEST = 72, WIDEST = 280; // pixels
const MEASURED = 500; // values of a column
const table = { ids: new Uint32Array(0), sorted: null, columns: [], active: 0 }; // sorted: { column, down }

// The columns of the table: how a cell reads, and by which key it sorts.
function tableColumns() {
  const shown = rows.columns.map((column) => ({
    key: column.name, width: columnWidth(column), isNumber: column.kind === "number",
    text: (i) => valueOf(column, i), order: columnOrder(column),
  }));
  const names = rows.names ? [{ key: about.namesTitle, width: 170, text: nameOf, order: () => nameRanks() }] : [];
  return [{ key: "row", width: 66, isNumber: true, text: (i) => String(rowNumber(i)), order: () => (i) => i }, ...names, ...shown];
}

// Wide enough for its name and the longest of some values, within limits.
function columnWidth(column) {
  let longest = column.name.length + 2;
  for (let i = 0; i < n; i += Math.ceil(n / MEASURED)) longest = Math.max(longest, valueOf(column, i).length);
  return Math.round(Math.max(NARROWEST, Math.min(WIDEST, CHARACTER * longest + 18)));
}

// Positions of texts in their order; a plain comparison where there are too many for one that knows languages.
function ranksOf(texts) {
  const order = Uint32Array.from(texts, (_, k) => k), isMany = texts.length > 20000;
  order.sort(isMany ? (a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0) : (a, b) => collator.compare(texts[a], texts[b]));
  const ranks = new Uint32Array(texts.length);
  order.forEach((k, rank) => { ranks[k] = rank; });
  return ranks;
}

function columnOrder(column) {
  return () => {
    if (!column.names) return (i) => column.values[i];
    column.ranks = column.ranks || ranksOf(column.names);
    return (i) => (isMissing(column, column.values[i]) ? NaN : column.ranks[column.values[i]]);
  };
}

function nameRanks() {
  rows.nameRanks = rows.nameRanks || ranksOf(rows.names);
  return (i) => rows.nameRanks[i];
}

// Missing values come last in either direction; equal ones keep the order of the rows.
function sortIds(ids) {
  if (!table.sorted) return ids;
  const key = table.sorted.column.order(), sign = table.sorted.down ? -1 : 1;
  const keys = Float64Array.from(ids, key), places = Uint32Array.from(ids, (_, k) => k);
  places.sort((a, b) => {
    if (Number.isNaN(keys[a]) || Number.isNaN(keys[b])) return Number.isNaN(keys[a]) - Number.isNaN(keys[b]) || a - b;
    return sign * (keys[a] - keys[b]) || a - b;
  });
  return places.map((k) => ids[k]);
}

const isTableOpen = () => !$("table").hidden;

function showTable(on) {
  $("table").hidden = !on;
  $("show-table").setAttribute("aria-pressed", String(on));
  if (on) fillTable(true);
}

const fillTable = oncePerFrame((isNew = false) => {
  if (!isTableOpen()) return;
  if (!table.columns.length) table.columns = tableColumns();
  table.ids = sortIds(shownIds());
  table.active = Math.max(0, table.ids.indexOf(pinned));
  $("table-count").textContent = highlighted ? `${grouped(table.ids.length)} of ${plural(n, "row")}` : plural(n, "row");
  const grid = $("table-grid"), wide = table.columns.reduce((sum, column) => sum + column.width, 0) + (about.thumbnails ? 36 : 0);
  grid.style.setProperty("--columns", (about.thumbnails ? "36px " : "") + table.columns.map((column) => `${column.width}px`).join(" "));
  grid.style.width = `${wide}px`;
  grid.setAttribute("aria-rowcount", String(table.ids.length + 1));
  showTableHead();
  $("table-space").style.height = `${Math.min(MAX_SCROLL, table.ids.length * rowPixels())}px`;
  if (isNew) scrollToRow(table.active);
  showTableRows();
});

// Marks the row of the pinned point and scrolls to it.
function followPinned() {
  if (!isTableOpen()) return;
  const k = table.ids.indexOf(pinned);
  if (k >= 0) {
    table.active = k;
    scrollToRow(k);
  }
  showTableRows();
}

function showTableHead() {
  const image = about.thumbnails ? [make("span", { role: "columnheader", "aria-label": "image" })] : [], head = $("table-head");
  const focused = [...head.querySelectorAll("button")].indexOf(document.activeElement);
  head.replaceChildren(...image, ...table.columns.map(headCell));
  if (focused >= 0) head.querySelectorAll("button")[focused].focus();
}

function headCell(column) {
  const isSorted = table.sorted !== null && table.sorted.column === column, down = isSorted && table.sorted.down;
  const arrow = make("span", { "aria-hidden": "true" }, isSorted ? (down ? " ↓" : " ↑") : "");
  const button = makeButton({ title: `Sort by ${column.key}` }, column.key, arrow);
  onClick(button, () => {
    table.sorted = !isSorted ? { column, down: false } : down ? null : { column, down: true };
    fillTable();
  });
  const sort = isSorted ? (down ? "descending" : "ascending") : "none";
  return make("span", { role: "columnheader", class: column.isNumber ? "number" : null, "aria-sort": sort }, button);
}

// The number of rows on the screen, and how far a table of all rows scrolls.
function tableExtent() {
  const tall = rowPixels(), visible = Math.max(1, Math.floor(($("table-scroller").clientHeight - tall) / tall));
  const space = Math.min(MAX_SCROLL, table.ids.length * tall), isScaled = space === MAX_SCROLL; // a pixel stands for several rows
  return { visible, isScaled, perRow: isScaled ? (space - visible * tall) / Math.max(1, table.ids.length - visible) : tall };
}

function showTableRows() {
  const { visible, isScaled, perRow } = tableExtent(), { scrollTop } = $("table-scroller"), made = [];
  const first = Math.max(0, Math.min(table.ids.length - 1, Math.floor(scrollTop / perRow + 1e-6)));
  for (let k = first; k < Math.min(table.ids.length, first + visible + 2); k++) made.push(tableRow(k));
  $("table-rows").style.transform = `translateY(${isScaled ? scrollTop : first * rowPixels()}px)`;
  $("table-rows").replaceChildren(...made);
}

function tableRow(k) {
  const i = table.ids[k], cells = table.columns.map(({ text, isNumber }) => {
    const value = text(i), title = value.length > 12 ? value.slice(0, 500) : null;
    return make("span", { role: "cell", class: isNumber ? "number" : null, title }, value.slice(0, 200));
  });
  const state = i === pinned ? "pinned" : k === table.active ? "active" : null;
  const row = make(
    "div", { role: "row", id: `table-row-${k}`, "aria-rowindex": String(k + 2), class: state },
    about.thumbnails ? make("span", { role: "cell" }, imageElement(i, rowPixels() - 5)) : null, ...cells,
  );
  row.addEventListener("pointerenter", () => ringAround(i));
  row.addEventListener("pointerleave", () => ringAround(-1));
  return onClick(row, () => pinTableRow(k));
}

const pinTableRow = (k) => pinCard(table.ids[k]);

// Arrow keys move along the rows, Enter pins.
function tableKey(event) {
  const page = Math.max(1, Math.floor($("table-scroller").clientHeight / rowPixels()) - 2);
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
  if (event.key === "Enter" && event.target === $("table-scroller")) return pinTableRow(table.active);
  if (step === undefined || event.target !== $("table-scroller")) return;
  event.preventDefault();
  table.active = Math.max(0, Math.min(table.ids.length - 1, table.active + step));
  scrollToRow(table.active);
  showTableRows();
  $("table-scroller").setAttribute("aria-activedescendant", `table-row-${table.active}`);
}

function scrollToRow(k) {
  const scroller = $("table-scroller"), { visible, perRow } = tableExtent(), first = Math.ceil(scroller.scrollTop / perRow - 1e-6);
  if (k < first) scroller.scrollTop = k * perRow;
  else if (k >= first + visible) scroller.scrollTop = (k - visible + 1) * perRow;
}

function listenToTable() {
  $("show-table").addEventListener("click", () => showTable(!isTableOpen()));
  $("close-table").addEventListener("click", () => showTable(false));
  $("table-export").addEventListener("click", exportRows);
  $("table-scroller").addEventListener("scroll", oncePerFrame(showTableRows));
  $("table-scroller").addEventListener("keydown", tableKey);
  new ResizeObserver(oncePerFrame(() => { if (isTableOpen()) showTableRows(); })).observe($("table-scroller"));
  highlightWatchers.push(() => fillTable());
}
