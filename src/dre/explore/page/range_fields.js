// Two fields for the ends of a range, numbers or dates, and a button for missing values: the keyboard's way to filter.
const toField = {
  number: (value) => String(value),
  day: (value) => new Date(value).toISOString().slice(0, 10),
  second: (value) => new Date(value).toISOString().slice(0, 19),
};

const FIELDS = {
  number: { type: "number", step: "any" }, day: { type: "date", step: null }, second: { type: "datetime-local", step: "1" },
};

function fieldKind(column) {
  return column.kind === "date" ? column.precision : "number";
}

// The value of a field, or null if it is empty. Dates are UTC, as the page shows them; a day as an upper end is meant whole.
function readField(field, column, isHigh) {
  if (!field.value) return null;
  if (column.kind !== "date") return Number(field.value);
  const time = Date.parse(column.precision === "day" ? field.value : `${field.value}Z`);
  return Number.isNaN(time) ? null : time + (isHigh ? (column.precision === "day" ? DAY : SECOND) - 1 : 0);
}

function rangeFields(column, bins) {
  const kind = fieldKind(column), { type, step } = FIELDS[kind];
  const [low, high] = ["from", "to"].map((end) => make("input", { type, step, "aria-label": `${column.name}, ${end}`, title: end }));
  const apply = () => filterRange(column, readField(low, column, false), readField(high, column, true));
  for (const field of [low, high]) field.addEventListener("change", apply);
  const ends = [bins.low, bins.isWhole ? bins.high - 1 : bins.high].map((value) => String(Number(value.toPrecision(4))));
  [low.placeholder, high.placeholder] = ends; // dates have a placeholder of the browser
  const button = makeButton({ class: "link", "aria-pressed": "false" }, `${grouped(bins.missing)} missing`);
  const missing = bins.missing ? onClick(button, () => toggleMissing(column)) : null;
  const show = (filter) => {
    const range = (filter && filter.range) || [null, null];
    [low, high].forEach((field, k) => {
      if (document.activeElement !== field || range[k] === null) field.value = range[k] === null ? "" : toField[kind](range[k]);
    });
    if (missing) missing.setAttribute("aria-pressed", String(Boolean(filter && filter.missing)));
  };
  return { element: make("div", { class: "line small range" }, low, make("span", { class: "quiet" }, "–"), high, missing), show };
}

function toggleMissing(column) {
  const filter = filters.get(filterName(column));
  if (filter && filter.missing) setFilter(filterName(column), null);
  else filterMissing(column);
}
