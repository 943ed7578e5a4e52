// The rows that pass all filters as CSV, with their exact coordinates and all columns.

// A text that a spreadsheet would run as a formula gets an apostrophe in front, as in src/dre/io/formulas.py.
function csvCell(text) {
  const safe = /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// A value in full; empty if it is missing.
function exactValue(column, i) {
  const value = column.values[i];
  if (column.names) return isMissing(column, value) ? "" : column.names[value];
  if (!Number.isFinite(value)) return "";
  if (column.kind === "date") return dateText(value, column.precision).replace(" ", "T");
  return exactText(value, column.values instanceof Float32Array);
}

// A name that occurs again gets a number, so that tables can be read by name.
function distinctNames(names) {
  const seen = new Map();
  return names.map((name) => {
    const count = (seen.get(name) || 0) + 1;
    seen.set(name, count);
    return count > 1 ? `${name}_${count}` : name;
  });
}

function rowsAsCsv(ids) {
  const { original } = maps[0].coordinates, axes = ["x", "y", "z"].filter((axis) => original[axis]);
  const head = ["row", ...(rows.names ? [about.namesTitle] : []), ...axes.map((_, k) => `dre${k + 1}`), ...rows.columns.map((column) => column.name)];
  const lines = Array.from(ids, (i) => [
    String(rowNumber(i)), ...(rows.names ? [rows.names[i]] : []), ...axes.map((axis) => exactText(original[axis][i], true)),
    ...rows.columns.map((column) => exactValue(column, i)),
  ]);
  return [distinctNames(head), ...lines].map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function exportRows() {
  saveFile(new Blob([rowsAsCsv(shownIds())], { type: "text/csv" }), highlighted ? "selection.csv" : "points.csv");
}
