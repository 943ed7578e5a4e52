// The columns of a text, matched by name to the features of the model; a row that can't be placed is named with its reason.
const SNIFFED_ROWS = 500, LISTED_NAMES = 5, LISTED_TEXT = 40; // rows that tell the mark of decimals and yes and no; names and characters in an error

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

function knownNames({ names, table }) {
  if (table) return new Set(table.named ? table.columns.map(({ name }) => name) : []);
  const stems = (names || []).flatMap((name) => [...name].flatMap((letter, k) => (letter === "=" && k ? [name.slice(0, k)] : [])));
  return new Set([...(names || []), ...stems]);
}

// What the model reads: fields of one text each, with what they write into a row. A field is a number, a boolean, a category, or
// the feature "kind=a", which is 1 where the column kind holds a.
function fieldsOf(layout, found, spec, units, decimal) {
  if (spec.table) return tableFields(layout, spec);
  const { names } = spec, named = layout.header && names;
  const columns = named ? matchByName(layout.header, names) : matchByPlace(layout, found, spec, units, decimal);
  return columns.map((column, k) => {
    const fill = spec.fill[column.name] ?? null, answers = column.equals ? null : yesAndNo(found, column.index, spec);
    return { kind: column.equals ? "equals" : answers ? "boolean" : "number", center: 0, scale: 1, ...column, fill, at: k };
  });
}

// Columns of a prepared table, as src/dre/data/table_preparation.py describes them in a model's file.
function tableFields(layout, { table: { named, columns } }) {
  const places = named ? matchPlaces(layout, columns.map(({ name }) => name)) : columns.map((_, k) => k);
  if (!named && layout.width !== columns.length) throw new Error(wrongWidth(layout.width, columns.length));
  let at = 0;
  return columns.map((column, k) => {
    const field = { ...column, index: places[k], at };
    at += column.kind === "category" ? column.categories.length : 1;
    return field;
  });
}

// The places of columns by their names, or in their order where a text has no names.
function matchPlaces(layout, names) {
  if (layout.header) return matchByName(layout.header, names).map(({ index }) => index);
  if (layout.width !== names.length) throw new Error(wrongWidth(layout.width, names.length, names));
  return names.map((_, k) => k);
}

function wrongWidth(width, wanted, names) {
  const which = names ? `: ${listNames(names)}, or a first line with their names` : "";
  return `its rows have ${width} value${width === 1 ? "" : "s"}, and the model reads ${wanted}${which}`;
}

// All columns in their order if they are as many as the model reads, else those that hold numbers.
function matchByPlace({ header, width }, found, spec, units, decimal) {
  const { names } = spec, all = Array.from({ length: width }, (_, index) => index);
  const isNumber = (text, k) => isMissing(text, spec) || Number.isFinite(toAmount(text, decimal, units[k]));
  const read = width === spec.width ? all : all.filter((k) => found.every(({ values }) => isNumber(values[k] || "", k)));
  if (read.length !== spec.width) throw new Error(wrongWidth(width, spec.width, names));
  return read.map((index, k) => ({ index, name: header ? header[index] : names ? names[k] : null, equals: null }));
}

function matchByName(header, names) {
  const places = new Map(header.map((name, k) => [name, k])), lacking = [];
  const columns = names.map((name) => {
    if (places.has(name)) return { index: places.get(name), name, equals: null };
    const of = categoryColumn(name, places);
    if (of === null) lacking.push(name);
    return { index: places.get(of), name: of, equals: of === null ? null : name.slice(of.length + 1) };
  });
  if (lacking.length === names.length && header.length === 1) throw new Error(`it is no table with the columns ${listNames(names)}: its first line is ${quoted(header[0].slice(0, LISTED_TEXT))}`);
  if (lacking.length) throw new Error(`it lacks the column${lacking.length > 1 ? "s" : ""} ${listNames(lacking)}; its columns are ${listNames(header.filter(Boolean))}`);
  const twice = columns.find(({ name }) => header.indexOf(name) !== header.lastIndexOf(name));
  if (twice) throw new Error(`it has several columns ${quoted(twice.name)}: rename all but one`);
  return columns;
}

const isMissing = (text, { missing }) => missing.includes(text.toLowerCase());

// Whether a column holds nothing but yes and no, in some language.
function yesAndNo(found, index, spec) {
  const values = found.map(({ values: each }) => (each[index] || "").toLowerCase()).filter((text) => !spec.missing.includes(text));
  return values.length > 0 && spec.answers.some((pair) => values.every((text) => pair.includes(text)));
}

// Each writes the values of a text into a row, and returns the reason if it can't.
const WRITERS = {
  number({ center, scale, index }, text, into, at, { decimal, units }) {
    into[at] = (toAmount(text, decimal, units[index]) - center) / scale;
    return Number.isFinite(into[at]) ? null : `is not a number${units[index] ? ` in ${units[index]}` : ""}`;
  },
  boolean({ center, scale }, text, into, at, { answers }) {
    const lower = text.toLowerCase(), number = Number(lower), [yes] = [0, 1].filter((k) => answers.some((pair) => pair[1 - k] === lower));
    const value = yes === undefined ? number : yes;
    into[at] = (value - center) / scale;
    return value === 0 || value === 1 ? null : "is neither yes nor no";
  },
  category({ categories, scale }, text, into, at, { counts }) {
    const whole = PLAIN_NUMBER.test(text) && Number.isInteger(Number(text)) ? String(Number(text)) : text;
    const found = categories.includes(text) ? categories.indexOf(text) : categories.indexOf(whole);
    for (let k = 0; k < categories.length; k++) into[at + k] = k === found ? 1 / scale : 0;
    if (found < 0) counts.unknown++;
    return null;
  },
  equals({ equals }, text, into, at) {
    into[at] = text === equals ? 1 : 0;
    return null;
  },
};

// A missing value is its field's fill: a category, or a number.
function writeFill(field, into, at, about) {
  if (field.kind === "category") return WRITERS.category(field, field.fill, into, at, about);
  into[at] = (field.fill - field.center) / field.scale;
  return null;
}

// A reader of records: read(values, into, at) writes the numbers of a row, and returns why it can't be placed, or null.
function rowReader(layout, found, spec) {
  const decimal = decimalMark(found, layout.separator), missing = new Set(spec.missing), units = unitsOf(layout, found, decimal, missing);
  const fields = fieldsOf(layout, found, spec, units, decimal), counts = { filled: 0, unknown: 0 }, about = { decimal, units, counts, answers: spec.answers };
  const where = ({ name, index }) => (name === null ? `column ${index + 1}` : quoted(name)), groups = equalsGroups(fields);
  const read = (values, into, at) => {
    if (values.length !== layout.width) return `it has ${values.length} values, the others ${layout.width}`;
    let isFilled = false;
    for (const field of fields) {
      const text = values[field.index], isGap = field.kind !== "equals" && missing.has(text.toLowerCase());
      if (isGap && (field.fill === null || field.fill === undefined)) return text ? `${quoted(text)} in ${where(field)} is read as a missing value` : `it lacks a value in ${where(field)}`;
      const problem = isGap ? writeFill(field, into, at + field.at, about) : WRITERS[field.kind](field, text, into, at + field.at, about);
      if (problem) return `${quoted(text.slice(0, 40))} in ${where(field)} ${problem}`;
      isFilled = isFilled || isGap;
    }
    counts.filled += isFilled ? 1 : 0;
    for (const [index, known] of groups) if (!known.has(values[index]) && !missing.has(values[index].toLowerCase())) counts.unknown++;
    return null;
  };
  return { read, counts, fields, numbers: { decimal, units, at: fields.filter(({ kind }) => kind === "number").map(({ index }) => index) } };
}

// The unit of each column, by which its numbers are read.
function unitsOf({ width }, found, decimal, missing) {
  const values = (k) => found.map((record) => record.values[k] || "").filter((text) => !missing.has(text.toLowerCase()));
  return Array.from({ length: width }, (_, k) => commonUnit(values(k), decimal));
}

// A value as a table with points and without units has it: a number that the model has read, or the text as it is.
function plainValue(text, index, { decimal, units, at }) {
  const isPlain = decimal === "." && PLAIN_NUMBER.test(text); // else 1.056 may be a thousand
  const number = at.includes(index) && !isPlain ? toAmount(text, decimal, units[index]) : NaN;
  return Number.isFinite(number) ? String(number) : text;
}

// By column the values that features such as "kind=a" know.
function equalsGroups(fields) {
  const groups = new Map();
  for (const { kind, index, equals } of fields) if (kind === "equals") groups.set(index, (groups.get(index) || new Set()).add(equals));
  return groups;
}
