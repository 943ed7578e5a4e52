// Search in all columns: parts of texts, numbers and dates as they are displayed, `column: text`, or `row 12`.
const SLOW_SEARCH = 100000; // points from which the search waits for a pause in typing
const PAUSE = 180; // milliseconds
let searchTimer = null;

function searchSoon(text) {
  clearTimeout(searchTimer);
  if (n > SLOW_SEARCH) searchTimer = setTimeout(search, PAUSE, text);
  else search(text);
}

function search(text) {
  const query = text.trim();
  if (!query) return setFilter("search", null);
  const mask = findRows(query), count = countOf(mask);
  setFilter("search", { mask, label: `“${query}”`, text, count, noColumn: unknownColumn(query) });
}

function findRows(query) {
  const mask = new Uint8Array(n), row = /^row\s+(\d+)$/i.exec(query), [columns, text] = splitQuery(query);
  const number = row ? Number(row[1]) : -1, found = row && rows.numbers ? rows.numbers.indexOf(number) : number;
  if (found >= 0 && found < n) mask[found] = 1;
  if (rows.names && columns === rows.columns) findNames(text.toLowerCase(), mask);
  for (const column of columns) {
    if (column.kind === "number") findNumbers(column, text, mask);
    else if (column.kind === "date") findDates(column, text, mask);
    else findTexts(column, text.toLowerCase(), mask);
  }
  return mask;
}

const COLUMN_QUERY = /^([^:]+):\s*(.*)$/;

// What stands where a query names a column, if no column has this name.
function unknownColumn(query) {
  const parts = COLUMN_QUERY.exec(query);
  return parts && splitQuery(query)[0] === rows.columns ? parts[1].trim() : null;
}

// `size: 3` looks in the column size only, if there is one; else it is a text like any other.
function splitQuery(query) {
  const parts = COLUMN_QUERY.exec(query);
  const named = parts && rows.columns.filter((column) => column.name.toLowerCase() === parts[1].trim().toLowerCase());
  return named && named.length ? [named, parts[2]] : [rows.columns, query];
}

function findNames(text, mask) {
  for (let i = 0; i < n; i++) if (rows.names[i].toLowerCase().includes(text)) mask[i] = 1;
}

function findTexts({ names, values }, text, mask) {
  const matches = names.map((name) => name.toLowerCase().includes(text));
  if (matches.includes(true)) for (let i = 0; i < n; i++) if (matches[values[i]]) mask[i] = 1;
}

// A number matches as it is displayed; with a decimal point, also longer numbers that begin alike. Few need to be written out to see.
function findNumbers(column, text, mask) {
  const wanted = text.replace("−", "-").replaceAll(",", ""), number = Number(wanted), { values } = column;
  if (!wanted || !Number.isFinite(number)) return;
  const decimals = wanted.split(".")[1], digit = decimals === undefined ? 0 : 10 ** -decimals.length;
  const near = digit + Math.abs(number) * 1e-3;
  for (let i = 0; i < n; i++) {
    if (values[i] === number) mask[i] = 1;
    else if (Math.abs(values[i] - number) <= near) {
      const shown = valueOf(column, i);
      if (shown === wanted || (decimals !== undefined && shown.startsWith(wanted))) mask[i] = 1;
    }
  }
}

// A date matches a year, month, day or time at its beginning.
function findDates(column, text, mask) {
  if (!/^\d{4}(-\d{0,2}(-\d{0,2}([T ][\d:]*)?)?)?$/.test(text)) return;
  const wanted = text.replace("T", " "), year = Number(text.slice(0, 4)), { values } = column;
  const from = Date.UTC(year, 0, 1), to = Date.UTC(year + 1, 0, 1);
  for (let i = 0; i < n; i++) if (values[i] >= from && values[i] < to && valueOf(column, i).startsWith(wanted)) mask[i] = 1;
}

highlightWatchers.push(() => {
  const filter = filters.get("search"), box = $("search");
  if (!filter && box.value.trim()) box.value = "";
  if (filter && !box.value) box.value = filter.text;
  const nothing = filter && filter.noColumn ? `nothing found; there is no column “${filter.noColumn}”` : "nothing found";
  const status = filter && (filter.count ? `${grouped(filter.count)} found; press Enter to zoom in` : nothing);
  $("search-status").textContent = status || "";
});

function zoomToFound() {
  const filter = filters.get("search"), ids = filter ? idsOf(filter.mask) : [];
  if (!ids.length) return;
  for (const map of maps) map.fitView(ids);
  if (ids.length === 1) pinCard(ids[0], maps[0]);
}
