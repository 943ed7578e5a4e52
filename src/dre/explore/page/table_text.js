// Text to records: encodings, separators, quotes, titles and headers as src/dre/io/readers/delimited.py reads them.
const SEPARATORS = ["\t", ";", ",", "|", " "]; // in the order in which they are preferred
const SNIFFED = 65536, SNIFFED_RECORDS = 20; // characters and records that tell the separator
const MIN_COUNTED = 4, FEWEST_BELOW_TITLE = 3;
const PLAIN_NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const NO_TEXT = /^%PDF-|[\0-\x08\x0e-\x1a\x1c-\x1f]/; // control characters, which no table has
const DEFUSED = /^'('*[=+\-@\t\r\n＝＋－＠])/; // the apostrophe before a formula is not part of the value

// UTF-16 and UTF-8 by their marks, else UTF-8 or what older programs write. Ends of lines become line feeds.
function decodeText(bytes) {
  const marks = [["utf-16le", [255, 254]], ["utf-16be", [254, 255]]];
  const [encoding] = marks.find(([, mark]) => mark.every((byte, k) => bytes[k] === byte)) || ["utf-8"];
  let text;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    text = new TextDecoder("windows-1252").decode(bytes);
  }
  if (NO_TEXT.test(text.slice(0, SNIFFED))) throw new Error("it is not text: save the table as CSV");
  return unifiedLines(text);
}

const unifiedLines = (text) => text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
const cleanCell = (text) => text.replace(DEFUSED, "$1").trim();

// The record that begins at a position: its values, and where the next one begins.
function readRecord(text, at, separator) {
  const found = text.indexOf("\n", at), lineEnd = found < 0 ? text.length : found, line = text.slice(at, lineEnd);
  if (!line.includes('"')) return { values: line ? line.split(separator).map(cleanCell) : [], next: lineEnd + 1 };
  const values = [];
  for (let k = at; ;) {
    let value = "";
    if (text[k] === '"') {
      for (;;) {
        const close = text.indexOf('"', k + 1);
        value += text.slice(k + 1, close < 0 ? text.length : close);
        k = close < 0 ? text.length : close + 1;
        if (text[k] !== '"') break;
        value += '"';
      }
    }
    const from = k;
    while (k < text.length && text[k] !== separator && text[k] !== "\n") k++;
    values.push(cleanCell(value + text.slice(from, k)));
    if (text[k] !== separator) return { values, next: k + 1 };
    k++;
  }
}

// Yields the records that are not blank, with their positions and line numbers.
function* records(text, separator, at = 0, line = 1) {
  while (at < text.length) {
    const { values, next } = readRecord(text, at, separator), read = text.slice(at, next);
    if (values.length && !(values.length === 1 && !values[0])) yield { values, at, line };
    line += read.includes('"') ? read.split("\n").length - (read.endsWith("\n") ? 1 : 0) : 1;
    at = next;
  }
}

const resemblesNumber = (text) => PLAIN_NUMBER.test(text.replace(",", "."));

function firstRecords(text, separator, at, count) {
  const found = [];
  for (const record of records(text, separator, at)) {
    found.push(record);
    if (found.length === count) break;
  }
  return found;
}

// Records above the table have at most half as many values as most records have.
function countTitles(found) {
  const counts = new Map(), filled = found.map(({ values }) => values.filter(Boolean).length);
  for (const { values } of found) counts.set(values.length, (counts.get(values.length) || 0) + 1);
  const [width] = [...counts].sort((a, b) => b[1] - a[1])[0] || [0], first = filled.findIndex((count) => 2 * count > width);
  return width >= FEWEST_BELOW_TITLE && first > 0 ? first : 0;
}

// The separator that leaves most numbers, since texts may contain any of them; and how many records above the table are titles.
function findSeparator(text, at) {
  const beginning = text.slice(0, at + SNIFFED);
  let best = { separator: ",", titles: 0 }, most = -1;
  for (const separator of SEPARATORS) {
    const found = firstRecords(beginning, separator, at, SNIFFED_RECORDS + 1).slice(0, SNIFFED_RECORDS), titles = countTitles(found);
    const below = found.slice(titles), count = below.flatMap(({ values }) => values).filter(resemblesNumber).length;
    if (below.length && below.every(({ values }) => values.length > 1) && count > most) {
      best = { separator, titles };
      most = count;
    }
  }
  return best;
}

// Whether the first record names the columns: names of the model are among them, or none is a number, or pandas numbered them.
function isHeader(values, known) {
  if (values.some((value) => known.has(value))) return true;
  const names = values.length > 1 && !values[0] ? values.slice(1) : values, numbers = names.filter(resemblesNumber);
  if (numbers.length >= MIN_COUNTED && numbers.every((value, k) => value === String(k))) return true;
  return !numbers.length && names.some(Boolean);
}

// How a text is laid out: separator, names of its columns or null, and where its rows begin.
function findLayout(text, known) {
  let at = 0;
  while (text[at] === "#" || text[at] === "\n") at = text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at) + 1;
  const { separator, titles } = findSeparator(text, at), line = text.slice(0, at).split("\n").length;
  const [head, second] = [...firstOf(records(text, separator, at, line), titles + 2)].slice(titles);
  if (!head) throw new Error("it is empty");
  if (!isHeader(head.values, known)) return { separator, header: null, at: head.at, line: head.line, width: head.values.length };
  if (!second) throw new Error("it has names of columns but no rows below them");
  const unnamed = second.values.length === head.values.length + 1; // R writes no name above its row names
  const header = unnamed ? ["", ...head.values] : head.values;
  return { separator, header, at: second.at, line: second.line, width: header.length };
}

function* firstOf(iterable, count) {
  for (const each of iterable) {
    if (count-- <= 0) return;
    yield each;
  }
}

// The mark of decimals that the numbers of some records have; in doubt it is a point. Between commas, quoted numbers may have
// commas, too, of which groups of thousands have three digits behind.
function decimalMark(found, separator) {
  const values = found.flatMap((record) => record.values), commas = values.filter((value) => /^[-+]?\d+,\d+$/.test(value));
  const points = values.filter((value) => /^[-+]?\d*\.\d+(e[-+]?\d+)?$/i.test(value));
  const hasComma = separator === "," ? commas.some((value) => !GROUPS["."][0].test(value)) : commas.length > 0;
  return hasComma && points.every((value) => /^[-+]?\d{1,3}(\.\d{3})+$/.test(value)) ? "," : ".";
}

const GROUPS = { ".": [/^[-+]?\d{1,3}([,'’]\d{3})+(\.\d+)?$/, /[,'’]/g], ",": [/^[-+]?\d{1,3}([. \u00a0\u202f'’]\d{3})+(,\d+)?$/, /[. \u00a0\u202f'’]/g] };

// Currencies, percents and short units, as in src/dre/io/readers/typed.py.
const UNIT = /^(?:[€$£¥]|CHF|EUR|USD|GBP)\s*|\s*(?:[€$£¥%]|[A-Za-zµ°]{1,4}[²³]?)$/g;

const unitOf = (text) => (text.match(UNIT) || []).join("").trim();
const withoutUnit = (text) => text.replace(UNIT, "");

// The unit that all values of a column have; "" if they have none, or different ones.
function commonUnit(texts, decimal) {
  const unit = texts.length ? unitOf(texts[0]) : "";
  return unit && texts.every((text) => unitOf(text) === unit && Number.isFinite(toNumber(withoutUnit(text), decimal))) ? unit : "";
}

// A number of a column, in whose unit it must be.
function toAmount(text, decimal, unit) {
  if (!unit) return toNumber(text, decimal);
  return unitOf(text) === unit ? toNumber(withoutUnit(text), decimal) : NaN;
}

// A number as people write it; NaN for what is none.
function toNumber(text, decimal) {
  if (decimal === "." && PLAIN_NUMBER.test(text)) return Number(text);
  const [grouped, marks] = GROUPS[decimal], plain = text.replace(/^\((.+)\)$/, "-$1");
  const digits = (grouped.test(plain) ? plain.replace(marks, "") : plain).replace(decimal, ".");
  return PLAIN_NUMBER.test(digits) ? Number(digits) : NaN;
}
