// The columns of a text, matched by name to the features of the model; a row that can't be placed is named with its reason.
const SNIFFED_ROWS = 500, LISTED_NAMES = 5; // rows that tell the mark of decimals and yes and no; names in an error

const quoted = (name) => `“${name}”`;

function listNames(names) {
  const more = names.length - LISTED_NAMES;
  return names.slice(0, LISTED_NAMES).map(quoted).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

// The column whose value a feature such as "kind=a" tells.
function categoryColumn(feature, places) {
  for (let k = feature.indexOf("="); k > 0; k = feature.indexOf("=", k + 1)) if (places.has(feature.slice(0, k))) return feature.slice(0, k);
  return null;
}

function knownNames({ names }) {
  const stems = (names || []).flatMap((name) => [...name].flatMap((letter, k) => (letter === "=" && k ? [name.slice(0, k)] : [])));
  return new Set([...(names || []), ...stems]);
}

// For each feature of the model its column in the text, and the text that counts as 1 if it is a category.
function matchColumns(layout, found, spec, decimal) {
  const { header, width } = layout, { names } = spec;
  if (header && names) return matchByName(header, names);
  if (width === spec.width) return Array.from({ length: width }, (_, index) => ({ index, name: header ? header[index] : names ? names[index] : null }));
  const numbers = Array.from({ length: width }, (_, k) => k).filter((k) => found.every(({ values }) => isMissing(values[k] || "", spec) || Number.isFinite(toNumber(values[k], decimal))));
  if (numbers.length === spec.width) return numbers.map((index, k) => ({ index, name: header ? header[index] : names ? names[k] : null }));
  const wanted = names ? `: ${listNames(names)}, or a first line with their names` : "";
  throw new Error(`its rows have ${width} value${width === 1 ? "" : "s"}, and the model reads ${spec.width}${wanted}`);
}

function matchByName(header, names) {
  const places = new Map(header.map((name, k) => [name, k])), lacking = [];
  const columns = names.map((name) => {
    if (places.has(name)) return { index: places.get(name), name };
    const of = categoryColumn(name, places);
    if (of === null) lacking.push(name);
    return { index: places.get(of), name: of, equals: of === null ? null : name.slice(of.length + 1) };
  });
  if (lacking.length) throw new Error(`it lacks the column${lacking.length > 1 ? "s" : ""} ${listNames(lacking)}; its columns are ${listNames(header.filter(Boolean))}`);
  const twice = columns.find(({ name }) => header.indexOf(name) !== header.lastIndexOf(name));
  if (twice) throw new Error(`it has several columns ${quoted(twice.name)}: rename all but one`);
  return columns;
}

const isMissing = (text, { missing }) => missing.includes(text.toLowerCase());

// Of a column that holds nothing but yes and no, in some language, the word for yes; else null.
function wordForYes(found, index, spec) {
  const values = found.map(({ values: each }) => (each[index] || "").toLowerCase()).filter((text) => !spec.missing.includes(text));
  const pair = values.length ? spec.answers.find(([yes, no]) => values.every((text) => text === yes || text === no)) : null;
  return pair ? pair : null;
}

// A reader of records: read(values, into, at) writes the numbers of a row, and returns why it can't be placed, or null.
function rowReader(layout, found, spec) {
  const decimal = decimalMark(found, layout.separator), missing = new Set(spec.missing);
  const columns = matchColumns(layout, found, spec, decimal).map((column) => ({ ...column, answers: wordForYes(found, column.index, spec) }));
  const counts = { filled: 0, unknown: 0 }, where = ({ name, index }) => (name === null ? `column ${index + 1}` : quoted(name));
  const known = new Map();
  for (const { name, equals } of columns) if (equals) known.set(name, [...(known.get(name) || []), equals]);
  const fill = new Map(Object.entries(spec.fill));
  const read = (values, into, at) => {
    if (values.length !== layout.width) return `it has ${values.length} values, the others ${layout.width}`;
    let isFilled = false;
    for (let k = 0; k < columns.length; k++) {
      const { index, equals, answers, name } = columns[k], text = values[index], lower = text.toLowerCase();
      if (equals) {
        into[at + k] = text === equals ? 1 : 0;
      } else if (missing.has(lower)) {
        if (!fill.has(name)) return `it lacks a value in ${where(columns[k])}`;
        into[at + k] = fill.get(name);
        isFilled = true;
      } else {
        const number = answers ? answers.indexOf(lower) : toNumber(text, decimal);
        into[at + k] = answers ? 1 - number : number;
        if (!Number.isFinite(number) || (answers && number < 0)) return `${quoted(text.slice(0, 40))} in ${where(columns[k])} is not a number`;
      }
    }
    counts.filled += isFilled ? 1 : 0;
    for (const [name, each] of known) {
      const text = values[columns.find((column) => column.name === name).index];
      if (!each.includes(text) && !missing.has(text.toLowerCase())) counts.unknown++;
    }
    return null;
  };
  return { read, counts, columns };
}
